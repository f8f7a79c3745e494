"""Where messages are kept: each store fulfils the kernel's `Store` protocol with its own SQL or structures."""
