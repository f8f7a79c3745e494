"""Bronze: what the store held, as it was."""
