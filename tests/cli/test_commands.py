"""What the command line imports: little, and that late."""

import ast
import subprocess
import sys
from pathlib import Path

import nbspam.cli
from nbspam.cli.main import _MODULES, _TABLE_MODULES
from support import SPAM

CLI = Path(nbspam.cli.__file__).parent
COMMAND_MODULES = {*_MODULES, *_TABLE_MODULES} - {"main"}
IMPORTED = """
import sys
from nbspam.cli.main import exit_status
exit_status(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""


def imported(*words, mail=SPAM):
    """Return the modules that a command line imports."""
    command = [sys.executable, "-c", IMPORTED, *map(str, words)]
    done = subprocess.run(command, input=mail, capture_output=True, check=True)
    return set(done.stderr.decode().splitlines()[-1].split())


def test_a_command_imports_no_other_and_no_room_that_it_does_not_need(trained):
    found = imported("classify", "-m", trained)

    assert {name for name in COMMAND_MODULES if f"nbspam.cli.{name}" in found} == {"judging"}
    rooms = {name.split(".")[1] for name in found if name.startswith("nbspam.")}
    assert not rooms & {"tables", "evaluation", "server", "maildir"}
    assert not {name for name in found if "training" in name and name.startswith("nbspam.cli")}

    for words in (["predict"], ["explain"], ["filter"], ["train", "--help"], ["update", "--help"]):
        found = imported(*words)
        assert not {name for name in found if name.startswith("nbspam.cli.table")}, words


def test_what_takes_long_to_import_waits_until_it_is_needed(trained):
    slow = {"scipy", "joblib", "rich", "regex", "email", "csv", "sklearn", "matplotlib", "jinja2"}
    for words, more in (
        (["classify"], set()),
        (["classify", "--json"], set()),
        (["filter"], {"json"}),
        (["classify", "--help"], {"numpy", "json"}),
        (["--version"], {"numpy", "json", "nbspam.settings"}),
    ):
        assert not (slow | more) & imported(*words), words


def test_one_message_takes_few_modules(trained):
    for mail in (SPAM, b"Content-Type: text/html\n\n<p style='color: red'>buy <b>now</b>"):
        names = imported("classify", "-m", trained, mail=mail)
        assert sum(name.partition(".")[0] == "nbspam" for name in names) <= 45


def test_the_command_line_computes_nothing():
    for path in sorted(CLI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(each.name for each in node.names)]
                assert not [name for name in names if name.split(".")[0] == "numpy"], path
