"""The recipes of docs/howto/mail.md, run by procmail and maildrop themselves."""

import re
import shutil
import subprocess
import sys

import pytest

from nbspam import __version__
from nbspam.classifier.classifier import judge_and_mark
from nbspam.cli.main import COMMANDS
from nbspam.mail.head import without_headers
from nbspam.mail.verdict_headers import HeaderChoices
from nbspam.store.open import load_tokens as load
from support import HAM, ROOT, SPAM

DOCUMENT = (ROOT / "docs" / "howto" / "mail.md").read_text()
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def recipe(name):
    (text,) = re.findall(rf"^```{name}\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    return text


def program(name):
    return pytest.param(
        name,
        marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"),
    )


PROGRAMS = [program("procmail"), program("maildrop")]
# How the filter may fail, as a shell script; None: it is missing.
BROKEN = {
    "missing": None,
    "without a model": 'exec "$PYTHON" -m nbspam "$@" -m /nonexistent/m.nbspam',
    "silent and failing": "exit 1",
    "dying half-way": "head -c 20; kill -9 $$",
    "deaf and failing": "exec <&-; exit 1",
}


class Home:
    """A home folder with a Maildir, and a folder of programs in its search path."""

    def __init__(self, path, model):
        self.path, self.bin = path, path / "bin"
        self.bin.mkdir(parents=True)
        for folder in ("", ".Spam"):
            for sub in ("cur", "new", "tmp"):
                (path / "Maildir" / folder / sub).mkdir(parents=True)
        self.environment = {
            "HOME": str(path),
            "PATH": f"{self.bin}:{SYSTEM_PATH}",
            "NBSPAM_MODEL": str(model),
            "PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SHELL": "/bin/sh",
            "DEFAULT": f"{path}/Maildir/",
            "VERBOSE": "0",
        }

    def install(self, script='exec "$PYTHON" -m nbspam "$@"'):
        if script is not None:
            (self.bin / "nbspam").write_text(f"#!/bin/sh\n{script}\n")
            (self.bin / "nbspam").chmod(0o755)

    def deliver(self, name, text, message):
        # Both programs reset their environment, HOME above all.
        start = [f'{key}="{value}"\n' for key, value in self.environment.items()]
        rules = self.path / f"{name}.rules"
        rules.write_text("".join(start) + text)
        rules.chmod(0o600)
        # With -m procmail does not touch the mailbox of the system.
        command = [name, "-m", str(rules)] if name == "procmail" else [name, str(rules)]
        return self.run(command, message)

    def run(self, command, data):
        how = {"env": self.environment, "cwd": self.path, "capture_output": True}
        return subprocess.run(command, input=data, check=False, **how)

    def mail(self, folder=""):
        return [p.read_bytes() for p in sorted((self.path / "Maildir" / folder / "new").iterdir())]


@pytest.fixture
def home(tmp_path, trained):
    return Home(tmp_path / "home", trained)


@pytest.mark.parametrize("name", PROGRAMS)
def test_spam_and_ham_go_where_they_belong(home, name):
    home.install()
    for message in (HAM, SPAM):
        done = home.deliver(name, recipe(name), message)
        assert done.returncode == 0, done.stderr

    (ham,), (spam,) = home.mail(), home.mail(".Spam")
    assert b"X-Nbspam: ham, probability=0." in ham
    assert b"X-Nbspam: spam, probability=0." in spam
    # procmail adds an empty line to the output of a filter.
    assert without_headers(ham, ["X-Nbspam"]).removesuffix(b"\n") in (HAM, HAM[:-1])
    assert without_headers(spam, ["X-Nbspam"]).removesuffix(b"\n") in (SPAM, SPAM[:-1])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("what", BROKEN)
def test_no_mail_is_lost_when_the_filter_is_broken(home, name, what):
    home.install(BROKEN[what])

    done = home.deliver(name, recipe(name), SPAM)

    assert done.returncode == 0, done.stderr
    assert home.mail() == [SPAM]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_mail_is_lost_when_the_folder_is_missing(home, name):
    home.install()
    shutil.rmtree(home.path / "Maildir" / ".Spam")

    assert home.deliver(name, recipe(name), SPAM).returncode == 0

    folder = ".Spam" if (home.path / "Maildir" / ".Spam").exists() else ""
    (message,) = home.mail(folder)
    assert without_headers(message, ["X-Nbspam"]).rstrip() == SPAM.rstrip()


@pytest.mark.parametrize("name", [program("procmail")])
def test_mail_may_wait_for_a_working_filter(home, name):
    first, _, rest = recipe(name).partition("| nbspam filter\n")
    text = recipe("procmail-wait") + rest
    assert first == ":0fw\n"

    home.install('exec "$PYTHON" -m nbspam "$@" -m /nonexistent/m.nbspam')
    assert home.deliver(name, text, SPAM).returncode == 75
    assert home.mail() == home.mail(".Spam") == []

    home.install()
    assert home.deliver(name, text, SPAM).returncode == 0
    assert len(home.mail(".Spam")) == 1


def test_the_scripts_of_the_document_learn(home):
    scripts = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
    (learn,) = (script for script in scripts if "update" in script)
    home.install()
    path = home.bin / "nbspam-learn"
    path.write_text(learn)
    path.chmod(0o755)

    done = home.run([path, "spam"], b"Subject: new\n\nspam\n")
    assert (done.returncode, done.stdout) == (0, b"learned 1\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_recipes_work_from_the_first_message_on(home, name):
    """Without a model, then with the spam that a user reports, then with ham too."""
    (home.path / "none").mkdir()
    home.environment["NBSPAM_MODEL"] = str(home.path / "none" / "m.nbspam")
    home.install()

    def learn(label, message):
        done = home.run([home.bin / "nbspam", "update", f"--{label}", "-"], message)
        assert done.returncode == 0, done.stderr

    assert home.deliver(name, recipe(name), SPAM).returncode == 0
    assert home.mail() == [SPAM]
    learn("spam", SPAM)
    assert home.deliver(name, recipe(name), SPAM).returncode == 0
    (judged,) = set(home.mail()) - {SPAM}
    assert judged.startswith(b"X-Nbspam: unsure, probability=0.500000")
    for n in range(3):
        learn("ham", HAM + b"%d\n" % n)
        learn("spam", SPAM + b"%d\n" % n)
    assert home.deliver(name, recipe(name), SPAM).returncode == 0
    assert [b"X-Nbspam: spam" in message for message in home.mail(".Spam")] == [True]


def test_header_forms_in_the_document_are_those_written(trained):

    classifier = load(str(trained))
    wanted = HeaderChoices(bogosity=True, spam_status=True)
    _, pieces = judge_and_mark(classifier, classifier.rule, wanted, SPAM)
    for line in pieces[1].decode().splitlines():
        shape = re.escape(re.sub(r"\d+\.\d+|BAYES_\d\d", "#", line.replace(__version__, "#")))
        numbered = DOCUMENT.replace(__version__, "#")
        assert re.search(shape.replace(r"\#", "#"), re.sub(r"\d+\.\d+|BAYES_\d\d", "#", numbered))


def test_every_command_of_the_document_is_one():
    found = set(re.findall(r"nbspam ([a-z]+)", DOCUMENT))
    found -= {"to", "is", "itself", "in", "does", "decides"}
    assert {"filter", "update", "sort", "import", "train"} <= found <= set(COMMANDS)
