"""An office that is killed at every step of a conversation, and what the next one must make of it."""
