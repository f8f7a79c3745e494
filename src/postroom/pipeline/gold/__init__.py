"""Gold: what people ask for. Every module is a transform from silver frames to one table."""
