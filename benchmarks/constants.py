"""Run `nbspam eval` with several values of one constant, and print its measures for each.

usage: python benchmarks/constants.py CONSTANT VALUE,VALUE,... ARGUMENT...

CONSTANT is the module below nbspam and the constant's name; ARGUMENT... are those of `nbspam
eval`.  Modules that import the constant by name keep its old value.  Example:

    python benchmarks/constants.py classifier.blending.ALPHA_OWN 0.003,0.01,0.03 \\
        20newsgroups/train --test 20newsgroups/test
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
    """Print a line of measures for every value."""
    module_name, _, name = constant.rpartition(".")
    module = import_module(f"nbspam.{module_name}")
    if not hasattr(module, name):
        sys.exit(f"{constant}: no such constant; give its module and name")
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
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
