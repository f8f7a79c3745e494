"""Postroom as a running process: it puts the parts together, and starts and stops them."""
