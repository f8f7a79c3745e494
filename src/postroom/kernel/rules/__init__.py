"""Rules: what happens by itself when a message is published, completed, failed or has ended."""
