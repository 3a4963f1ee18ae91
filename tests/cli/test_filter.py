"""The filter as mail systems call it: a process between two pipes; recipes of the guide."""

import io
import os
import re
import shutil
import subprocess
import sys
from unittest.mock import Mock

import pytest

from nbspam import __version__
from nbspam.classifier.classifier import judge_and_mark
from nbspam.delivery.filter import copy_message
from nbspam.disk import locked
from nbspam.errors import InputError, NbspamError
from nbspam.mail.headers import MAX_BYTES
from nbspam.mail.verdict_headers import HeaderChoices, with_headers
from nbspam.store.open import load_tokens as load
from support import HAM, ROOT, SPAM, blocks_of, complains, make_maildir, needs, raising

FAILURES = [
    (["-m", "/nonexistent/m.nbspam"], 1),
    (["-m", "."], 1),
    (["-m", sys.executable], 1),
    (["--no-such-option"], 2),
    (["--fp-cost", "dear"], 2),
    (["--subject-tag", "a\nb"], 2),
    (["--loss", "/nonexistent"], 2),
    (["message.eml"], 2),
]


def run(*arguments, stdin=b"", **options):
    command = [sys.executable, "-m", "nbspam", "filter", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, input=stdin, check=False, **streams)


def unmarked(data):
    """Return a message without the header of the filter, and without a head that it added."""
    pattern = rb"(?m)^X-Nbspam: .*\n(?:X-Nbspam-Head: .*\n\r?\n)?"
    return re.sub(pattern, b"", data, count=1)


def test_a_large_message_is_never_held_whole():
    data = b"A: b\n\n" + b"x" * (2 * MAX_BYTES)
    source, sink, seen = Mock(wraps=io.BytesIO(data)), io.BytesIO(), []

    def rewrite(data, whole):
        seen.append((len(data), whole))
        return with_headers(data, [("X-Nbspam", "ham")], ["X-Nbspam"], whole=whole)

    copy_message(source, sink, rewrite)

    assert seen == [(MAX_BYTES, False)]
    assert max(each.args[0] for each in source.read.call_args_list) < MAX_BYTES
    assert sink.getvalue() == b"X-Nbspam: ham\n" + data


def test_the_message_passes_whatever_fails_and_a_part_of_it_is_an_error():
    told = r"x: no|\[Errno 5\] no|-: (no memory left|KeyError\(\)); the message passed unchanged"
    for data in (b"", b"A: b\n\nbody", b"x" * 200_000):
        for error in (InputError("x: no"), OSError(5, "no"), MemoryError(), KeyError()):
            sink, read = io.BytesIO(), Mock(side_effect=(data, b"", MemoryError()))
            with pytest.raises((NbspamError, OSError), match=f"^({told})$"):
                copy_message(Mock(read=read), sink, raising(error))
            assert sink.getvalue() == data

    sink = Mock(writelines=raising(MemoryError))
    with pytest.raises(NbspamError, match="only part of the message was written"):
        copy_message(io.BytesIO(b"A: b\n\n"), sink, lambda data, whole: [data])


@pytest.mark.parametrize("data", [b"", SPAM.replace(b"\n", b"\r\n"), bytes(range(256))])
def test_a_message_comes_through_with_a_verdict(trained, data):
    done = run(stdin=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"X-Nbspam: ")
    assert unmarked(done.stdout) == data


def test_on_any_failure_the_message_passes_unchanged_but_at_a_terminal_none_is_typed(
    nbspam, trained, monkeypatch
):
    for arguments, status in FAILURES:
        found, out, err = nbspam("filter", *arguments, stdin=SPAM)
        assert (found, out, bool(err)) == (status, SPAM.decode(), True)
        found = nbspam("filter", *arguments, "--tempfail", stdin=SPAM)
        assert found[:2] == (75, SPAM.decode())
    data = bytearray(trained.read_bytes())
    data[len(data) // 2] ^= 1
    trained.write_bytes(data)
    found, out, err = nbspam("filter", stdin=SPAM)
    assert (found, out, "damaged" in err) == (1, SPAM.decode(), True)
    monkeypatch.setattr("nbspam.cli.output.at_terminal", lambda: True)
    done = nbspam("filter", "message.eml", stdin=SPAM)
    assert complains(done, 2, "the message comes by standard input")
    assert done[1] == ""


def test_a_broken_installation_lets_mail_pass():
    script = (
        "import sys\nsys.modules['numpy'] = None\n"
        "from nbspam.cli.main import exit_status\n"
        "sys.exit(exit_status(['filter', '--tempfail']))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=SPAM, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (75, SPAM)
    assert b"numpy" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
@pytest.mark.parametrize("megabytes", [130, 150])
def test_lack_of_memory_is_never_reported_as_success(trained, megabytes):
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    data = SPAM + b"word another \n" * 1_000_000
    done = run("--tempfail", stdin=data, preexec_fn=limit)

    # If a library inside numpy runs out of memory it ends the process, before any output.
    assert done.stdout.endswith(data) if done.returncode == 0 else done.stdout in (data, b"")


def test_a_reader_that_is_gone_a_full_disk_and_closed_streams_are_failures(trained, tmp_path):
    for closed in ("<&-", ">&-"):
        command = f"exec {sys.executable} -m nbspam filter {closed}"
        done = subprocess.run(["sh", "-c", command], input=SPAM, capture_output=True, check=False)
        told = b"nbspam: -: standard input or output is closed; pipe a message through\n"
        assert (done.returncode, done.stderr) == (1, told)

    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as sink:
        done = run("--tempfail", stdin=SPAM, stdout=sink)
    assert done.returncode == 75
    assert done.stderr == b"nbspam: -: nobody reads standard output; the message was not written\n"

    for unbuffered in "", "1":
        command = f"ulimit -f 1; exec {sys.executable} -m nbspam filter --tempfail >{tmp_path}/out"
        options = {"env": {**os.environ, "PYTHONUNBUFFERED": unbuffered}, "check": False}
        done = subprocess.run(["sh", "-c", command], input=20 * SPAM, stderr=-1, **options)
        assert complains((done.returncode, b"", done.stderr.decode()), 75, "; free some space or")


def test_a_pause_of_the_writer_or_of_the_reader_is_no_end(trained):
    data = SPAM + b"x" * (1 << 18)  # more than a pipe holds
    (reads, writes), (answers, answered) = os.pipe(), os.pipe()
    os.set_blocking(reads, False)
    os.set_blocking(answered, False)
    command = [sys.executable, "-m", "nbspam", "filter"]
    with subprocess.Popen(command, stdin=reads, stdout=answered) as process:
        os.close(answered)
        os.write(writes, data[:50])
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        os.write(writes, data[50:])
        os.close(writes)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        with open(answers, "rb") as answer:
            assert answer.read().endswith(data[50:])
    os.close(reads)


def test_confident_verdicts_on_whole_messages_are_learned(nbspam, trained, monkeypatch):
    message = SPAM + b"more\n"
    learn = ("filter", "--learn", "confident", "--spam-status", "--subject-tag", "[SPAM] ")

    out = nbspam(*learn, "--sure", "1", stdin=message)[1]
    assert "autolearn=no" in out
    assert nbspam("update", "--spam", "-", stdin=message)[1] == "learned 1\n"
    nbspam("unlearn", "-", stdin=message)

    out = nbspam.out(*learn, "--sure", ".6", stdin=message)
    assert "autolearn=spam" in out
    # The delivered message, with header and tag, counts as the same message.
    assert nbspam("update", "--spam", "-", stdin=out.encode())[1] == "confirmed 1\n"
    assert nbspam("relabel", "--to", "ham", "-", stdin=message)[1] == "moved 1\n"
    nbspam.out(*learn, "--sure", ".6", stdin=message)  # a person knows better
    assert nbspam("relabel", "--to", "ham", "-", stdin=message)[1] == "already known 1\n"
    nbspam("deny", "ann@lunch.example")  # whom anybody can forge
    forged = b"From: ann@lunch.example\n" + HAM
    assert "YES" in (out := nbspam.out(*learn, stdin=forged))
    assert "autolearn=no" in out
    assert nbspam("unlearn", "-", stdin=forged)[1] == "not known 1\n"

    monkeypatch.setattr("nbspam.delivery.filter.MAX_BYTES", 1000)
    large = SPAM + b"cheap pills " * 1000
    _, out, _ = nbspam(*learn, "--sure", ".6", stdin=large)
    assert out.endswith("cheap pills " * 1000)
    assert "autolearn=no" in out
    assert nbspam("unlearn", stdin=large)[1] == "not known 1\n"


def test_a_failure_to_learn_does_not_undo_the_delivery(nbspam, trained, monkeypatch):
    from nbspam.errors import ModelFileError
    from nbspam.store import model as living

    learn, said = ("filter", "--learn", "confident", "--sure", ".6"), "was not learned: {}\n"
    status, out, err = nbspam(*learn, "--spam-status", stdin=b"GIF89a\n" + SPAM)
    assert (status, out[-len(SPAM) :], "autolearn=no" in out) == (0, SPAM.decode(), True)
    assert err.endswith(said.format("looks like a GIF picture, not like mail or text"))

    monkeypatch.setattr("nbspam.delivery.filter._PATIENCE", 0.1)
    with locked(str(trained)):
        status, out, err = nbspam(*learn, stdin=SPAM)
    assert (status, out[-len(SPAM) :]) == (0, SPAM.decode())
    assert f"was not learned: {trained}: locked by another process for 0.1 seconds; " in err

    for error, why in (
        (ModelFileError("m: full"), "m: full"),
        (MemoryError, "MemoryError()"),
        (ImportError("fcntl"), "ImportError('fcntl')"),
    ):
        monkeypatch.setattr(living.StoredModel, "learn_each", raising(error))
        status, out, err = nbspam(*learn, "--tempfail", stdin=SPAM)
        assert (status, err) == (0, "nbspam: the message is through, and " + said.format(why))
        assert out.endswith(SPAM.decode())


# ---- the recipes of docs/howto/mail.md, run by procmail and maildrop themselves ----

DOCUMENT = (ROOT / "docs" / "howto" / "mail.md").read_text()
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def recipe(name):
    (text,) = blocks_of(DOCUMENT, name)
    return text


def program(name):
    return pytest.param(name, marks=needs(name))


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
        make_maildir(path / "Maildir", ".Spam")
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
    assert unmarked(ham).removesuffix(b"\n") in (HAM, HAM[:-1])
    assert unmarked(spam).removesuffix(b"\n") in (SPAM, SPAM[:-1])

    shutil.rmtree(home.path / "Maildir" / ".Spam")  # no mail is lost
    assert home.deliver(name, recipe(name), SPAM).returncode == 0
    folder = ".Spam" if (home.path / "Maildir" / ".Spam").exists() else ""
    (message,) = (each for each in home.mail(folder) if each != ham)
    assert unmarked(message).rstrip() == SPAM.rstrip()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("what", BROKEN)
def test_no_mail_is_lost_when_the_filter_is_broken(home, name, what):
    home.install(BROKEN[what])

    done = home.deliver(name, recipe(name), SPAM)

    assert done.returncode == 0, done.stderr
    assert home.mail() == [SPAM]


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
    (learn,) = (each for each in blocks_of(DOCUMENT, "sh") if "update" in each and "#!" in each)
    home.install()
    path = home.bin / "nbspam-learn"
    path.write_text(learn)
    path.chmod(0o755)

    done = home.run([path, "spam"], b"Subject: new\n\nspam\n")
    assert (done.returncode, done.stdout) == (0, b"learned 1\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_recipes_work_from_the_first_message_on(nbspam, home, name):
    """Without a model, then with the spam that a user reports, then with ham too."""
    (home.path / "none").mkdir()
    model = home.path / "none" / "m.nbspam"
    home.environment["NBSPAM_MODEL"] = str(model)
    home.install()

    def learn(label, message):
        assert nbspam("update", "-m", model, f"--{label}", "-", stdin=message)[0] == 0

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
    _, pieces, _ = judge_and_mark(classifier, classifier.rule, wanted, SPAM)
    for line in pieces[1].decode().splitlines():
        shape = re.escape(re.sub(r"\d+\.\d+|BAYES_\d\d", "#", line.replace(__version__, "#")))
        numbered = DOCUMENT.replace(__version__, "#")
        assert re.search(shape.replace(r"\#", "#"), re.sub(r"\d+\.\d+|BAYES_\d\d", "#", numbered))
