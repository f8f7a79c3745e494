"""The lake: Delta tables whose every commit says how far the ledger has been taken in."""
