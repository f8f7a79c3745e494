"""Lanes: each agent's inbox is worked through one turn at a time, over all processes."""
