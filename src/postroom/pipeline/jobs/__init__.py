"""What runs: the session, one run from bronze to gold, watching, pruning, erasing, back-tests."""
