"""Providers against fakes of the real programs and loopback model servers: no network, no key."""
