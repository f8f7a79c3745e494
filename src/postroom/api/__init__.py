"""The HTTP entrance: the office's own API, live events, the authentication in front of them all."""
