"""The office's endpoints, one file for each thing one can ask about."""
