"""The use cases: one method for each thing a person or program can ask for. Every entrance calls these.

Permission, validation, limits and the audit are here and nowhere else; entrances translate.
"""
