"""Random histories of an office, with kills and changes of settings, and what must hold after each."""
