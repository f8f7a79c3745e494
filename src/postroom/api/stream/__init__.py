"""Live events: one reader of the ledger for all who listen, and a way back for those who were away."""
