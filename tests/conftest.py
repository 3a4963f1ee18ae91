"""Shared by all tests: the command line in this process, embedded mail, golden files."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import settings

from browser import launched
from maildirs import Maildir
from nbspam.classifier.training import learn_items
from nbspam.cli.main import exit_status
from nbspam.evaluation.metrics import bootstrap_interval
from nbspam.settings import PRESETS
from nbspam.sources.items import read_items
from support import first_mails, write_mails
from tier import Measurement, mark_slow

# A machine that has other things to do is no failure: no law has a deadline. `make test` asks
# for `--hypothesis-profile quick`.
settings.register_profile("nbspam", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="rewrite golden files")
    parser.addoption("--rewrite-tier", action="store_true", help="rewrite the list of slow tests")


def pytest_configure(config):
    """Load the full profile; the command line's, if there is one, is loaded after it."""
    settings.load_profile("nbspam")
    if os.uname().machine in ("aarch64", "arm64"):  # see nbspam/__init__.py
        config.addinivalue_line("filterwarnings", "ignore:.* encountered in matmul")
    if config.getoption("--rewrite-tier"):
        config.pluginmanager.register(Measurement())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not config.getoption("--rewrite-tier"):
        mark_slow(items)
    # A long test that began last would run alone.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch, tmp_path_factory, request):
    """Let neither the user's files nor their environment decide anything."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    # What a test leaves in the default place, no other finds.
    own = tmp_path_factory.getbasetemp() / f"data-{id(request.node):x}"
    monkeypatch.setenv("XDG_DATA_HOME", str(own))
    for name in [name for name in os.environ if name.startswith("NBSPAM_")]:
        monkeypatch.delenv(name)


class CommandLine:
    """The command line in this process: (*arguments, stdin) -> (status, output, errors)."""

    def __init__(self, monkeypatch, capsys, *first):
        self.monkeypatch, self.capsys, self.first = monkeypatch, capsys, first

    def __call__(self, *arguments, stdin=b""):
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = exit_status([str(argument) for argument in (*self.first, *arguments)])
        captured = self.capsys.readouterr()
        return status, captured.out, captured.err

    def out(self, *arguments, stdin=b""):
        """Run a command that succeeds and writes no errors; return its output."""
        status, out, err = self(*arguments, stdin=stdin)
        assert (status, err) == (0, "")
        return out

    def json(self, *arguments, stdin=b""):
        status, out, err = self(*arguments, "--json", stdin=stdin)
        assert status == 0, err
        return json.loads(out)


@pytest.fixture
def nbspam(monkeypatch, capsys):
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Where the user's configuration file is: it does not exist yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "nbspam").mkdir(parents=True)
    return tmp_path / "config" / "nbspam" / "config.toml"


@pytest.fixture
def table(monkeypatch, capsys):
    return CommandLine(monkeypatch, capsys, "table")


@pytest.fixture
def exported(nbspam, model):
    """Train a model: (*arguments) -> the lines of its text."""

    def call(*arguments):
        assert nbspam("train", *arguments)[0] == 0
        return nbspam("export")[1].splitlines()

    return call


@pytest.fixture
def folder(tmp_path):
    """A folder with two messages of each class."""
    return write_mails(tmp_path / "mails")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Where the model is: named by the environment, as users do."""
    path = tmp_path / "data" / "m.nbspam"
    monkeypatch.setenv("NBSPAM_MODEL", str(path))
    return path


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    """Where a model of such a folder lies, with all that training leaves there."""
    place = tmp_path_factory.mktemp("trained")
    command = [sys.executable, "-m", "nbspam", "train", "-m", place / "data" / "m.nbspam"]
    subprocess.run([*command, write_mails(place / "mails")], check=True, capture_output=True)
    return place / "data"


@pytest.fixture
def trained(trained_once, folder, model):
    """Where a model of the folder is: a copy, as training is most of a test's time."""
    shutil.copytree(trained_once, model.parent)
    return model


@pytest.fixture
def maildir(tmp_path, trained):
    """An empty Maildir, and that model, by which it is sorted."""
    return Maildir(tmp_path / "Maildir", trained)


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """Do not wait for the disk: what a crash of the machine leaves is not tested here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def few_resamples(monkeypatch):
    """Draw 20 resamples for an interval: what its ends are is tested where intervals are."""
    monkeypatch.setattr(bootstrap_interval, "__defaults__", (20,))


@pytest.fixture(scope="session")
def mails():
    """A folder with ham/ and spam/: the first hundred embedded messages of each."""
    return first_mails()


@pytest.fixture(scope="session")
def mail_classifier(mails):
    """A classifier of the preset "mail" that was trained on that folder."""
    return learn_items(read_items([str(mails)]), PRESETS["mail"]).classifier


@pytest.fixture(scope="module")
def browser():
    """Chromium; of one module only, because the loop that drives it bars others from running."""
    with launched() as found:
        yield found
