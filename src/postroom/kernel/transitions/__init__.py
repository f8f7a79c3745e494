"""The use cases, one idea a module: each takes the transition context and a command, checks, then writes."""
