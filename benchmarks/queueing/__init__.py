"""The parts of the queue benchmark: who is measured, how, and how it is reported."""
