"""Benchmarks, one module each: `scripts/bench queue`. Their parts live in packages beside them."""
