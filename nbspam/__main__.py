"""Run the command line: `nbspam`, or `python -m nbspam`."""

import sys


def run() -> None:
    """Run the command line and exit with its status."""
    try:
        from nbspam.cli.main import main
    except KeyboardInterrupt:  # imports take a tenth of a second, and nothing was begun
        sys.exit(130)  # 128 + SIGINT, as in shells
    main()


if __name__ == "__main__":
    run()
