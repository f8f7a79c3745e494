"""The HTTP entrance: the office's own API, live events, the doorkeeper in front of them all."""
