"""Turns: what an agent is told, what it answers, and what follows from it."""
