"""The routes, one noun a file. Each says which permission it needs and by which name the audit knows it."""
