"""Schedules: when they come due, for agents and for plain queues."""
