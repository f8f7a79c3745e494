"""The portal in a real browser."""
