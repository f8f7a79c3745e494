"""Intake: words of people are routed, cleaned and published to inboxes, once per platform id."""
