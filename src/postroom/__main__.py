"""`python -m postroom` is the command `postroom`."""

from postroom.terminal.cli.app import main

main()
