"""The use cases: one function for each thing a person or program can ask for. Every entrance calls these."""
