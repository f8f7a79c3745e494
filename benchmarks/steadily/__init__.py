"""What the benchmark of an hour of steady load is made of."""
