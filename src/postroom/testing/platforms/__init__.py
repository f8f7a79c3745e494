"""Fake chat platforms on loopback that speak the platforms' real protocols."""
