"""The command line: each file a command or a group of commands, `app.py` all of them together."""

import gc

# What is imported stays: looking through it for garbage all the time costs a command a tenth of its time.
gc.set_threshold(20_000, 10, 10)
