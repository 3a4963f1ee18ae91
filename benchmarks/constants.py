"""Try values of one constant, everything else as it stands: what `nbspam eval` says of each.

    python benchmarks/constants.py blending.ALPHA_OWN 0.003,0.01,0.03 20newsgroups/train \\
        --test 20newsgroups/test

The module and name of the constant, its values, and the arguments of `nbspam eval`.
"""

import contextlib
import io
import json
import sys
from ast import literal_eval
from importlib import import_module

from nbspam.cli.main import exit_status

NUMBERS = ("accuracy", "mcc", "auc", "log_loss", "calibration_error")


def main(constant: str, values: str, arguments: list[str]) -> None:
    """Print a line of numbers for every value."""
    module_name, name = constant.split(".")
    module = import_module(f"nbspam.{module_name}")
    if not hasattr(module, name):
        sys.exit(f"{constant}: no such constant; it stands at the head of its module")
    print(name, *NUMBERS, sep="\t")
    for value in values.split(","):
        setattr(module, name, literal_eval(value))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = exit_status(["eval", "--json", *arguments])
        if status:
            sys.exit(status)
        found = json.loads(out.getvalue())
        numbers = (found.get(number) for number in NUMBERS)
        print(value, *("" if x is None else f"{x:.5f}" for x in numbers), sep="\t", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
