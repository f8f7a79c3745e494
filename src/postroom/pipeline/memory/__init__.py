"""Memory: the words of the past, in pieces that say where they come from."""
