"""Run the command line with `python -m nbspam`."""

from nbspam.cli.main import main

main()
