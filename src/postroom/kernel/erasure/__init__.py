"""Erasure of a person's data: which messages are about a subject, and what is left of them."""
