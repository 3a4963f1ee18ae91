"""What all commands share: -q, -v, the model option, the environment."""

import subprocess
import sys

import click
import pytest

from nbspam.cli.main import COMMANDS, cli
from nbspam.cli.options import default_model_path
from support import HAM, ROOT, SPAM, complains, write_misfiled

# Every command, with arguments that it succeeds on.  FOLDER is the folder that MODEL learned.
RUNS = {
    "classify": "FOLDER",
    "predict": "FOLDER",
    "explain": "FOLDER",
    "filter": "",
    "sort": "BOX",
    "train": "FOLDER",
    "update": "FOLDER --spam NEW",
    "unlearn": "ONE",
    "relabel": "ONE --to spam",
    "prune": "--min-df 2",
    "eval": "FOLDER",
    "compare": "FOLDER --cv 2 --against --pairs",
    "tune": "FOLDER --cv 2",
    "doubts": "MISFILED",
    "info": "",
    "words": "",
    "tokens": "FOLDER",
    "doctor": "",
    "export": "",
    "import": "TEXT",
    "merge": "MODEL MODEL -o OTHER",
    "query": "-m NETWORK",
    "lazy": "FOLDER NEW",
    "cluster": "FOLDER -k 2",
    "help": "words",
}
# What they print says what they did; of the others it is what they were asked for.
DOING = {"sort", "train", "update", "unlearn", "relabel", "prune", "import", "merge"}


@pytest.fixture
def run(nbspam, trained, folder, tmp_path):
    """Return a function that runs a command of RUNS with more options."""
    (tmp_path / "box" / "cur").mkdir(parents=True)
    (tmp_path / "box" / "new").mkdir()
    (tmp_path / "box" / "new" / "1").write_bytes(HAM)
    (tmp_path / "new.eml").write_bytes(SPAM + b"new\n")
    (tmp_path / "text").write_text(nbspam("export")[1])
    places = {
        "FOLDER": folder,
        "ONE": folder / "ham" / "1.eml",
        "MODEL": trained,
        "OTHER": tmp_path / "other",
        "BOX": tmp_path / "box",
        "NEW": tmp_path / "new.eml",
        "MISFILED": write_misfiled(tmp_path / "misfiled"),
        "TEXT": tmp_path / "text",
        "NETWORK": ROOT / "corpora" / "melon-network.json",
    }

    def call(name, *options):
        words = [places.get(word, word) for word in RUNS[name].split()]
        status, out, err = nbspam(name, *words, *options, stdin=SPAM)
        assert status == 0, err
        return out, err

    return call


def test_every_command_is_run_here():
    # Except the one that runs until a signal: tests/cli/test_serve.py.
    assert sorted(RUNS) == sorted({*COMMANDS} - {"serve"})


@pytest.mark.parametrize("name", RUNS)
def test_commands_say_nothing_on_standard_error_by_themselves(name, run):
    assert run(name)[1] == ""


@pytest.mark.parametrize("name", RUNS)
def test_verbose_says_model_messages_and_time(name, run, trained, folder):
    out, err = run(name, "-v")
    lines = err.splitlines()
    parameters = {each.name for each in cli.get_command(None, name).params}

    assert out
    assert lines[-1].startswith("nbspam: took 0.")
    models = [line for line in lines if line.startswith("nbspam: model ")]
    assert len(models) == (2 if name == "merge" else "model_path" in parameters)
    n_read = {"update": 5, "unlearn": 1, "relabel": 1, "doubts": 81}.get(name, 4)
    assert (f"nbspam: messages read: {n_read}" in lines) == ("sources" in parameters)


@pytest.mark.parametrize("name", RUNS)
def test_quiet_leaves_results_and_silences_everything_else(name, run):
    out, err = run(name, "-q", "-v")

    assert err == ""
    if name in DOING:
        assert out == ""
    elif name not in {"eval", "tune", "compare"}:  # which take a second
        assert out == run(name)[0] != ""


def test_quiet_silences_warnings_and_keeps_the_status(nbspam, trained, folder):
    (folder / "spam" / "3.eml.gz").write_bytes(b"not gzip")
    status, out, err = nbspam("classify", folder)

    assert (status, "skipped" in err) == (1, True)
    assert nbspam("classify", folder, "-q") == (status, out, "")
    assert complains(nbspam("classify", folder, "-q", "--strict"), 1, "3.eml")


def test_quiet_commands_still_print_json(run):
    for name in DOING:
        if name != "help":
            assert run(name, "-q", "--json")[0].startswith("{"), name


# --- options that commands share -------------------------------------------------------------


def options():
    for name in COMMANDS:
        for each in cli.get_command(None, name).params:
            if isinstance(each, click.Option):
                yield name, each


def test_one_short_letter_means_one_thing():
    meanings = {}
    for name, each in options():
        (long, *_) = [opt for opt in each.opts if opt.startswith("--")] or [f"-k of {name}"]
        for letter in each.opts:
            if not letter.startswith("--"):
                meanings.setdefault(letter, set()).add(long)

    assert meanings.pop("-k") == {"-k of cluster"}
    assert all(len(names) == 1 for names in meanings.values()), meanings
    assert {"-m", "-q", "-v", "-n", "-j", "-o"} <= set(meanings)


def test_every_command_that_has_a_model_takes_it_the_same_way():
    without = {"compare", "merge", "tokens", "lazy", "cluster", "help"}
    for name in COMMANDS:
        found = [each for each in cli.get_command(None, name).params if each.name == "model_path"]
        assert bool(found) == (name not in without), name
        for each in found:
            assert each.opts == ["-m", "--model-file"]
            assert each.envvar == "NBSPAM_MODEL"
            assert each.default is default_model_path


# --- the environment -------------------------------------------------------------------------


def test_every_option_has_an_environment_variable_of_its_own():
    names = [(each.envvar, name) for name, each in options() if each.envvar is not None]

    assert len({envvar for envvar, _ in names} - {"NBSPAM_MODEL"}) == len(
        [envvar for envvar, _ in names if envvar != "NBSPAM_MODEL"]
    )
    assert {("NBSPAM_TRAIN_MIN_DF", "train"), ("NBSPAM_EVAL_JSON", "eval")} <= set(names)


@pytest.mark.parametrize(
    ("variable", "value", "label"),
    [
        ("NBSPAM_CLASSIFY_FP_COST", "1e9", "ham"),
        ("NBSPAM_CLASSIFY_FP_COST", "0.5", "spam"),
        ("NBSPAM_CLASSIFY_PRIOR", "spam=1e-9", "ham"),
        ("NBSPAM_CLASSIFY_JSON", "1", "{"),
        ("NBSPAM_CLASSIFY_JSON", "0", "spam"),
    ],
)
def test_the_environment_sets_options(nbspam, trained, monkeypatch, variable, value, label):
    monkeypatch.setenv(variable, value)
    assert nbspam("classify", stdin=SPAM)[1].startswith(label)


def test_options_win_over_the_environment(nbspam, trained, monkeypatch):
    monkeypatch.setenv("NBSPAM_CLASSIFY_FP_COST", "1e9")
    assert nbspam("classify", "--fp-cost", "2", stdin=SPAM)[1].startswith("spam")


def test_a_wrong_value_of_the_environment_is_named_by_its_variable(nbspam, monkeypatch):
    monkeypatch.setenv("NBSPAM_TRAIN_ALPHA", "much")
    assert complains(nbspam("train"), 2, "NBSPAM_TRAIN_ALPHA much: not a number from 0 up")


@pytest.mark.parametrize(
    ("closed", "out", "err"), [(">&-", b"", b""), ("2>&-", b"ham\n", b""), ("<&-", b"ham\n", b"")]
)
def test_a_closed_stream_gets_nothing_and_is_no_failure(trained, folder, closed, out, err):
    command = f"exec {sys.executable} -m nbspam predict {folder}/ham/1.eml {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)
