"""The parts of the benchmark of database servers: who is measured, how, and how it is reported."""
