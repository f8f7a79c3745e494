"""The queue itself: model, states, ordering, leases, retries, dead letters, ledger, housekeeping.

Pure logic and use cases over the `Store` protocol; it knows no database and no HTTP.
"""
