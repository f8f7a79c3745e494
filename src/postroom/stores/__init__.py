"""Where messages are kept: each store fulfils the kernel's `Store` protocol in its own way."""
