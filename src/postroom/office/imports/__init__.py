"""Taking over an office that another program kept: TinyAGI, or TinyClaw as it was called before."""
