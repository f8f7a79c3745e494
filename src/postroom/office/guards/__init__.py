"""How far a conversation may go, and what it may cost, before a person is asked."""
