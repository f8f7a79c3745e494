"""The use cases, one idea a module: each takes the desk and a command, checks, then writes."""
