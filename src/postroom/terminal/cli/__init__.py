"""The command line: each file a command or a group of commands, `app.py` all of them together."""
