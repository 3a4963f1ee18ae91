"""Run the command line with `python -m nbspam`."""

from nbspam.cli import main

main()
