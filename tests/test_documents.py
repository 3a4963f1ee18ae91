"""Every document is kept true by running what it shows.

Each ```console block is run as a terminal session, and each ```python block as a program.  What
stands under a command is what it prints; a line `...` stands for any lines, and `...` within a
line for any text.  `pytest tests/test_documents.py --rewrite-golden` rewrites the outputs:
look at the difference, and shorten the new outputs by `...` again.
"""

import doctest
import glob
import os
import re
import shlex
import subprocess
import sys

import joblib
import pytest

from nbspam.cli.main import COMMANDS
from support import ROOT, columns, install_program, make_maildir

sys.path.insert(0, str(ROOT / "tools"))

import house

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
GUIDES = ("docs/family.md", "docs/family.zh.md")
LONG_SESSIONS = {*GUIDES, "docs/howto/scripts.md", "docs/tutorial.md"}
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# One call of nbspam, which this process can make itself: fed by a pipe or a file, or not, and
# written into a pipe or a file, or not.
SIMPLE = re.compile(
    r"(?:(?P<before>(?:(?!nbspam)[^;&])+) \| )?nbspam (?P<words>[^|;&<>]*)"
    r"(?:< (?P<file>[^|;&<> ]+) ?)?(?P<after>[|>] (?:(?!nbspam )[^;&']|'[^']*')+)?"
)


@pytest.fixture
def terminal(nbspam, tmp_path, monkeypatch):
    """Return a function that runs a command line in the folder where all sessions begin."""
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    mail = ROOT / "corpora" / "mail"
    make_maildir(tmp_path / "Maildir", ".Spam")
    stored = {"cur": "ham/0[0-3]*", ".Spam/cur": "spam/0[0-3]*", "new": "*/04[89]*"}
    for place, pattern in stored.items():
        for number, path in enumerate(sorted(mail.glob(pattern)), 1):
            seen = ":2,S" if place.endswith("cur") else ""
            (tmp_path / "Maildir" / place / f"{number}{seen}").write_bytes(path.read_bytes())
    (tmp_path / "message.eml").write_bytes((mail / "spam" / "001-pills-plain.eml").read_bytes())
    monkeypatch.chdir(tmp_path)
    install_program(tmp_path / "bin", monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NBSPAM_MODEL", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    def run(line):
        simple = SIMPLE.fullmatch(line)
        if simple is None:
            out = shell(line).decode()
        else:
            stdin = shell(simple["before"]) if simple["before"] else b""
            if simple["file"]:
                stdin = (tmp_path / simple["file"]).read_bytes()
            words = []
            for word in map(os.path.expanduser, shlex.split(simple["words"])):
                words += sorted(glob.glob(word)) if "*" in word else [word]
            status, out, err = nbspam(*words, stdin=stdin)
            assert status == 0, (line, err)
            if simple["after"]:
                out = shell(f"cat {simple['after']}", out.encode()).decode()
        out = out.replace(str(tmp_path), "/home/you")
        return "".join(f"{each.rstrip()}\n" for each in out.splitlines())

    return run


def shell(line, stdin=None):
    return subprocess.run(line, shell=True, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def rerun(text, run):
    """Return a document with its wrong outputs replaced, and a list of these.

    run: returns what a command line prints.  Each wrong output comes as the command line, what
    is shown and what was printed.
    """
    wrong = []

    def command(found):
        line, shown = found.groups()
        printed = run(line)
        if fits(shown, printed):
            return found[0]
        wrong.append((line, shown, printed))
        return f"$ {line}\n{printed}"

    return CONSOLE.sub(lambda block: COMMAND.sub(command, block[0]), text), wrong


def fits(shown, printed):
    """Return whether an output is the one shown, which may have gaps."""
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, printed) is not None


def assert_prints(sessions, folder, names):
    """Run sessions in a folder.  names: those of a page, and what has them really."""
    commands = [found for text in sessions for found in COMMAND.findall(text)]
    assert commands
    for line, shown in commands:
        for name, real in names.items():
            line = line.replace(name, real)
        done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, check=False)
        printed = done.stdout.decode().replace("\r\n", "\n")
        for name, real in names.items():
            printed = printed.replace(real, name)
        printed += "\n" * (not printed.endswith("\n")) if printed else ""
        assert fits(shown, printed), (line, printed, done.stderr)


def test_gaps_in_an_output_stand_for_lines_and_for_text():
    assert fits("a\n...\nd\n", "a\nb\nc\nd\n")
    assert fits("a 1... c\n", "a 123 c\n")
    assert not fits("a\n", "a\nb\n")
    assert not fits("a...\n", "a\nb\n")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name, marks=[pytest.mark.slow] * (name in LONG_SESSIONS))
        for path, name in zip(DOCUMENTS, NAMES, strict=True)
    ],
)
def test_sessions_print_what_documents_show(path, terminal, request, monkeypatch):
    if "\nexport NBSPAM_MODEL=MODEL\n" in path.read_text("utf-8"):
        monkeypatch.setenv("NBSPAM_MODEL", "MODEL")
    text, wrong = rerun(path.read_text("utf-8"), terminal)
    if request.config.getoption("--rewrite-golden"):
        path.write_text(text, "utf-8")
    for line, shown, printed in wrong:
        assert printed == shown, line


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_programs_in_documents_run(path, terminal, capsys):
    programs = PYTHON.findall(path.read_text("utf-8"))
    names = {}
    for program in programs:
        if ">>>" in program:
            test = doctest.DocTestParser().get_doctest(program, names, path.name, None, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            assert runner.failures == 0, capsys.readouterr().out
            names = test.globs
        else:
            exec(compile(program, path.name, "exec"), names)


@pytest.mark.slow
def test_commands_in_place_of_other_filters_run(terminal, tmp_path):
    """The page shows no output of these, so that nothing holds them but this."""
    page = (ROOT / "docs" / "howto" / "coming-from.md").read_text("utf-8")
    rows = re.findall(r"^\| [^\n]* \| ([^|]*(?:\\\|[^|]*)*) \|$", page, re.MULTILINE)
    commands = [line for row in rows for line in re.findall(r"`((?:[^`]*nbspam|rm) [^`]*)`", row)]
    spam = sorted((ROOT / "corpora" / "mail" / "spam").glob("*.eml"))[:3]
    (tmp_path / "inbox.mbox").write_bytes(
        b"".join(b"From a Thu Aug 22 12:36:00 2002\n%s\n" % path.read_bytes() for path in spam)
    )
    assert len(commands) > 45
    for line in commands:
        if not os.path.exists(".local/share/nbspam/model.nbspam") and "import" not in line:
            terminal("nbspam train corpora/mail")
        terminal(line.replace("\\|", "|"))


def test_documents_name_what_exists():
    index = (ROOT / "docs" / "howto" / "README.md").read_text()
    for path in (ROOT / "docs" / "howto").glob("[a-z]*.md"):
        assert f"]({path.name})" in index, path

    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), (path, target)

    for path in [*DOCUMENTS, ROOT / "Makefile"]:
        if path != MEASUREMENTS:  # that page names the commit which has them all
            for name in re.findall(r"benchmarks/[a-z_]+\.[a-z]+", path.read_text("utf-8")):
                assert (ROOT / name).exists(), (path, name)

    for path in DOCUMENTS:
        found = re.findall(r"(?:^\$ |\| |`|^    )nbspam ([a-z]+)", path.read_text("utf-8"), re.M)
        assert set(found) <= {*COMMANDS, "COMMAND"}, path


def test_the_front_page_is_short_and_fits_a_terminal():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100
    for name in ("README.md", "docs/tutorial.md"):
        for line in (ROOT / name).read_text("utf-8").splitlines():
            assert len(line) <= 80 or line.startswith("|"), (name, line)


# --- reference -------------------------------------------------------------------------------


def documented_keys(page, heading):
    """Return the names in the first column of the tables of one section."""
    text = (ROOT / "docs" / "reference" / page).read_text("utf-8")
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    listed = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {name for column in listed for name in re.findall(r"`([^`]+)`", column)}


MODELS = {
    "Models of mail and text": "train corpora/mail",
    "Models of dependent tokens": "train corpora/mail --model aode --features 20",
    "Models of tables": "table train corpora/lihang-4.1.csv --target Y",
}


@pytest.mark.slow
@pytest.mark.parametrize("heading", MODELS)
def test_every_key_of_a_model_file_is_in_the_reference(heading, terminal, tmp_path):
    terminal(f"nbspam {MODELS[heading]} -m model")
    found = joblib.load(tmp_path / "model")
    assert set(found) == documented_keys("model-file.md", heading)
    if "memory" in found:
        known = documented_keys("model-file.md", "What a model remembers")
        assert set(found["memory"]) == known


@pytest.mark.slow
def test_blended_models_store_two_sums_and_no_weights(terminal, tmp_path):
    classes = "--label a=corpora/mail/ham --label b=corpora/mail/spam --label c=message.eml"
    terminal(f"nbspam train {classes} -m model")
    state = joblib.load(tmp_path / "model")

    more = set(state) - documented_keys("model-file.md", "Models of mail and text")
    assert more == {"group_total", "group_size"}
    assert state["weight"].size == 0


# --- the guide to all models, and the corpora ------------------------------------------------


def test_the_guides_show_the_same_sessions_and_all_equations():
    """So that one cannot be changed without the other."""
    english, chinese = ((ROOT / name).read_text("utf-8") for name in GUIDES)

    assert CONSOLE.findall(english) == CONSOLE.findall(chinese)
    assert PYTHON.findall(english) == PYTHON.findall(chinese)
    for text in (english, chinese):
        numbers = re.findall(r"^    .* \(7\.(\d+)\)$", text, re.MULTILINE)
        assert list(map(int, numbers)) == list(range(1, 38))


def test_the_guide_names_a_command_for_every_system():
    table = (ROOT / "docs" / "family.md").read_text("utf-8").split("## Every system")[1]
    rows = re.findall(r"^\| ([^|]+) \| .*`[^`\n]+`.* \|$", table, re.MULTILINE)

    assert len(rows) >= 14
    assert {"SPODE", "TAN", "AODE", "A2DE", "EM", "Bayesian network"} <= set(rows)


@pytest.mark.slow
def test_the_demonstration_judges_nine_tenths_right_and_fits_a_terminal(terminal):
    out = terminal(f"sh {ROOT}/benchmarks/demo.sh bin/nbspam corpora/mail")

    right = [float(share) for share in re.findall(r"right \((.*)%\)", out)]
    assert len(right) == 2
    assert min(right) > 89
    assert out.endswith("(constant)\n")
    assert max(map(columns, out.splitlines())) <= 80


def test_the_corpora_are_counted_truly():
    counted = (ROOT / "corpora" / "README.md").read_text()
    for label in ("ham", "spam"):
        n = len(list((ROOT / "corpora" / "mail" / label).glob("*.eml")))
        assert re.search(rf"\b{n}\b", counted), (label, n)


# --- measurements and decisions --------------------------------------------------------------

CITED = re.compile(r"\b[DE]-\d{3}\b")
CITING = ("nbspam", "tests", "benchmarks", "tools", "docs", "corpora")
MEASUREMENTS = ROOT / "docs" / "explanation" / "measurements.md"


def defined_numbers():
    """Return the numbers of all measurements and decisions, from their rows and headings."""
    pages = (MEASUREMENTS, ROOT / "DECISIONS.md")
    lines = "\n".join(page.read_text("utf-8") for page in pages)
    heads = re.findall(r"^(?:\| |#+ )((?:[DE]-\d{3}(?:, )?)+)", lines, re.MULTILINE)
    return {number for head in heads for number in CITED.findall(head)}


def test_every_measurement_and_decision_that_is_cited_exists():
    files = [path for folder in CITING for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml")]
    texts = [path for path in files if path.suffix in (".py", ".md", ".toml", ".txt", ".sh")]
    known = defined_numbers()
    missing = {
        str(path.relative_to(ROOT)): lacking
        for path in [*texts, ROOT / "Makefile"]
        if (lacking := set(CITED.findall(path.read_text("utf-8"))) - known)
    }

    assert len(known) > 100
    assert missing == {}


def test_every_measurement_names_what_repeats_it():
    rows = re.findall(r"^\| E-\d{3}.*$", MEASUREMENTS.read_text("utf-8"), re.MULTILINE)

    assert len(rows) > 100
    for row in rows:
        *_, question, outcome, command = row.strip("|").split(" | ")
        assert question.endswith("?"), row
        assert outcome, row
        assert "`" in command or command.startswith("not kept"), row


def test_the_page_of_rooms_names_all_modules_and_no_others():
    text = (ROOT / "docs" / "explanation" / "rooms.md").read_text("utf-8")
    _, *parts = re.split(r"^\*\*(?:The )?([a-z]+)\*\*", text, flags=re.MULTILINE)
    for room, part in zip(parts[::2], parts[1::2], strict=True):
        folder = ROOT / "nbspam" / ("" if room == "lobby" else room)
        there = folder.glob("[a-z]*.py") if room == "lobby" else folder.rglob("[a-z]*.py")
        named = re.findall(r"`(?:[a-z_]+/)?([a-z_]+\.py)`", part)
        named += re.findall(rf"`{room}/(?:[a-z_]+/)?([a-z_]+\.py)`", text)
        assert {path.name for path in there} <= set(named), room
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text))
    modules = [f"/{path.relative_to(ROOT)}" for path in (ROOT / "nbspam").rglob("*.py")]
    modules += [f"/{path.relative_to(ROOT)}" for path in (ROOT / "tests").glob("*.py")]

    assert {name for name in named if not any(m.endswith(f"/{name}") for m in modules)} == set()
    reading = re.findall(r"^\d+\. `([a-z_/]+\.py)`", text, re.MULTILINE)
    assert len(reading) == 17
    assert {f"/nbspam/{name}" for name in reading} <= set(modules)
    source = "".join(path.read_text("utf-8") for path in (ROOT / "nbspam").rglob("*.py"))
    in_code = set(re.findall(r"`(\w+)`", text)) - {"NAME_command"}
    assert in_code <= set(re.findall(r"\w+", source))


def test_docstrings_and_documents_name_the_thing_that_acts():
    assert house.unclear_sentences(ROOT / "nbspam") == []
