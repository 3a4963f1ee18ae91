"""aiospamc, a client of spamd's protocol for programs in Python, with compression and without."""

import asyncio
from pathlib import Path

import pytest

from serving import free_port, serving
from support import HAM, SPAM

pytestmark = pytest.mark.slow
aiospamc = pytest.importorskip("aiospamc", reason="aiospamc is not installed")
LESSON = b"Subject: a lesson of mine\n\nabout harbours and anchors\n"


@pytest.fixture(scope="module", params=["path", "port"])
def where(request, tmp_path_factory, served_model):
    """Start a server; return the arguments that lead to it."""
    folder = tmp_path_factory.mktemp("aiospamc")
    model = folder / "m.nbspam"
    model.write_bytes(served_model.read_bytes())
    port = free_port() if request.param == "port" else None
    with serving(model, folder, "--allow-tell", "--jobs", "1", spamd=port) as served:
        yield {"host": "127.0.0.1", "port": port} if port else {"socket_path": Path(served.spamd)}


def call(name, *arguments, **options):
    return asyncio.run(getattr(aiospamc, name)(*arguments, **options))


@pytest.mark.parametrize("compress", [False, True])
def test_all_questions_are_answered(where, compress):
    for data, is_spam in ((SPAM, True), (HAM, False)):
        for name in ("check", "headers", "process", "report", "report_if_spam", "symbols"):
            found = call(name, data, **where, compress=compress, user="ann")
            assert found.status_code == 0, name
            assert found.headers.spam.value is is_spam, name
            assert (found.headers.spam.score >= 5) is is_spam
            assert found.headers.spam.threshold == 5
    large = SPAM + b"buy cheap pills now\n" * 50_000
    assert call("process", large, **where, compress=compress).body.endswith(large)


@pytest.mark.parametrize("compress", [False, True])
def test_lessons_are_told_done_if_they_are(where, compress):
    def tell(*arguments):
        return call("tell", LESSON, *arguments, **where, compress=compress).headers

    assert "DidSet" in tell("spam", None, "local")
    assert "DidSet" not in tell("spam", None, "local")  # known already
    assert "DidSet" in tell("ham", None, "local")
    assert "DidRemove" in tell("ham", "local", None)
    assert "DidRemove" not in tell("ham", "local", None)
    assert "DidSet" not in tell("spam", None, "remote")


def test_it_pings(where):
    assert call("ping", **where).message == "PONG"


def test_refusals_are_exceptions(where, own_model, tmp_path):
    from aiospamc import responses as errors

    with pytest.raises(errors.ProtocolException, match="Set and Remove name the same"):
        call("tell", LESSON, "spam", "local", "local", **where)
    with serving(own_model, tmp_path, "--jobs", "1", limits={"waiting": 0}) as served:
        busy = {"socket_path": Path(served.spamd)}
        with pytest.raises(errors.TemporaryFailureException, match="too many messages"):
            call("check", SPAM, **busy)
        with pytest.raises(errors.UnavailableException, match="TELL is not allowed"):
            call("tell", LESSON, "spam", None, "local", **busy)
