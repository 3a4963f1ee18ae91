"""Commands that share: their lessons reach a log that wants TLS and a password, or wait.

The page about several servers is run word for word.
"""

from contextlib import closing

import pytest

from nbspam.cli.exchanging import _print_status
from nbspam.sharing.outbox import Outbox
from protocols import tell
from serving import certificate, serving
from shared_logs import SERVERS, MemoryLog, message, real_log
from support import ROOT, blocks_of, complains, install_program, make_maildir
from test_documents import assert_prints

PASSWORD = "correct horse"


def waiting(model):
    with closing(Outbox(str(model))) as outbox:
        return outbox.size()


@pytest.fixture(params=SERVERS)
def secured(request, tmp_path, monkeypatch):
    """Run a log's server that speaks TLS and wants a password."""
    files = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", files[0])
    options = {"password": PASSWORD, "tls": files}
    with real_log(request.param, tmp_path / "server", **options) as server:
        yield server


@pytest.mark.slow
def test_a_log_is_trusted_by_its_certificate_and_trusts_a_password(
    nbspam, secured, tmp_path, monkeypatch
):
    mail = tmp_path / "mail.eml"
    mail.write_bytes(message(1))
    update = ["update", "-m", tmp_path / "model", "--ham", mail, "--share-sync"]
    known, wrong = (
        ["--share-password-command", f"echo '{text}'"] for text in (PASSWORD, "guessed")
    )
    other = secured.url.replace("127.0.0.1", "localhost")
    stranger = secured.url.replace(f"sslrootcert={secured.tls[0]}", "sslrootcert=system")

    assert nbspam(*update, "--share", other, *known)[0] == 1  # the certificate names no localhost
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", "/dev/null")
        assert complains(nbspam(*update, "--share", stranger, *known), 1, "certificate")
    for given in ([], wrong):
        assert complains(nbspam(*update, "--share", secured.url, *given), 1, "password")
    failing = ["--share-password-command", "false"]
    refused = nbspam(*update, "--share", secured.url, *failing)
    assert complains(refused, 1, "--share-password-command: exit status 1")
    assert waiting(tmp_path / "model") == 1  # learned, and nobody was told
    assert nbspam(*update, "--share", secured.url, *known)[0] == 0
    (tmp_path / "other").mkdir()
    for model in (tmp_path / "model", tmp_path / "other" / "model"):
        status = nbspam.out("share", "status", "-m", model, "--share", secured.url, *known)
        assert status.endswith(": 1 record; models equal\n")
    assert not list((tmp_path / "other").iterdir())


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ((), "not compared yet"), (("a", None), "not compared yet"),
        (("a", "b", None), "not equal now"), (("a", ["a"], "a"), "not equal now"),
        (("a", "a"), "equal"), (("a", "a", "lags"), "not compared yet"),
        (("a", "a", "gone"), "equal"),
    ],
)  # fmt: skip
def test_models_are_called_equal_once_every_host_has_told_its_digest(models, words, capsys):
    log = MemoryLog()
    log.append([b"one"])
    for number, model in enumerate(models):
        told = MemoryLog.seconds - 3600 * (model == "gone")
        facts = {"read": 0 if model in ("lags", "gone") else 1, "time": told}
        log.report(f"host{number}", {**facts, **({"model": model} if model else {})})
    _print_status(log, False)
    assert f"memory://log: 1 record; models {words}\n" in "".join(capsys.readouterr())


def test_whatever_learns_into_a_model_that_shares_keeps_its_lessons_for_the_log(nbspam, tmp_path):
    model, maildir, mail = tmp_path / "model", tmp_path / "Maildir", tmp_path / "mail.eml"
    for n in range(40):
        folder = tmp_path / ("spam" if n % 2 else "ham")
        folder.mkdir(exist_ok=True)
        (folder / str(n)).write_bytes(message(n))
    labelled = ["--spam", tmp_path / "spam", "--ham", tmp_path / "ham"]
    assert nbspam("update", "-m", model, *labelled)[0] == 0
    text = tmp_path / "texts"
    assert nbspam("train", *labelled, "--preset", "text", "-m", text)[0] == 0
    refused = nbspam("update", "-m", text, *labelled, "--share", "redis://127.0.0.1:1/x")
    assert complains(refused, 2, "a model of texts, of the classes ham, spam; serve a model of")
    assert not [*tmp_path.glob("*.share")]
    Outbox(str(model)).close()  # from now on, it shares

    with serving(str(model), tmp_path, "--allow-tell", "-j", "1") as server:
        server.ask(tell("ham", message(99)))
    assert waiting(model) == 1
    make_maildir(maildir, ".Spam")
    (maildir / "new" / "1").write_bytes(message(100))
    nbspam("sort", "-m", model, maildir)
    (place,) = (path for path in maildir.rglob("1*") if path.is_file())
    to = maildir / (".Spam/cur" if place.parent.parent == maildir else "cur")
    place.rename(to / f"{place.name.partition(':')[0]}:2,S")  # its user moves it
    assert nbspam("sort", "-m", model, maildir)[0] == 0
    assert waiting(model) == 2
    mail.write_bytes(message(1))
    assert nbspam("unlearn", "-m", model, mail)[0] == 0
    assert waiting(model) == 3
    learn = ["--learn", "confident", "--sure", "0.51"]
    assert nbspam("filter", "-m", model, *learn, stdin=message(1))[0] == 0
    assert waiting(model) == 4


@pytest.mark.parametrize("server", ["redis"], indirect=True)
def test_the_page_prints_what_it_shows(server, tmp_path, monkeypatch):
    for number, name in enumerate(("ham", "spam")):
        (tmp_path / f"{name}.eml").write_bytes(message(number))
    install_program(tmp_path / "bin", monkeypatch)
    page = (ROOT / "docs" / "howto" / "sharing.md").read_text("utf-8")
    names = {"127.0.0.1:6379": f"127.0.0.1:{server.port}"}
    assert_prints(blocks_of(page, "text"), tmp_path, names)
