"""The housekeepers ("system agents"): what must happen although nobody asks for it."""
