"""Run the command line: `nbspam`, or `python -m nbspam`."""

import gc
import sys


def run() -> None:
    """Run the command line and exit with its status."""
    # Imports and caches create a hundred thousand objects that live to the end, and mail leaves no
    # garbage.  By default the collector would scan them repeatedly, which takes a twentieth of the
    # start-up time; one scan of all of them takes as long as 100 messages.
    gc.set_threshold(300_000)
    try:
        from nbspam.cli.main import main
    except KeyboardInterrupt:  # imports take a tenth of a second, and nothing was begun
        sys.exit(130)  # 128 + SIGINT, as in shells
    main()


if __name__ == "__main__":
    run()
