"""Channels: what people write on a chat platform comes in once, and what agents answer goes out once.

The contract is in docs/concepts/delivery.md. A platform is one folder here.
"""
