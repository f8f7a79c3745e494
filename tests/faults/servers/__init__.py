"""Faults of database servers and of the way to them, under load of several processes; checks after each."""
