"""aiospamc, a client of spamd's protocol for programs in Python, with compression and without."""

import asyncio
from pathlib import Path

import pytest

from serving import serving
from support import HAM, SPAM

pytestmark = pytest.mark.slow
aiospamc = pytest.importorskip("aiospamc", reason="aiospamc is not installed")
LESSON = b"Subject: a lesson of mine\n\nabout harbours and anchors\n"


def call(path, name, *arguments, **options):
    """Return the answer to a call of the client's; path: of the server's socket."""
    function = getattr(aiospamc, name)
    return asyncio.run(function(*arguments, socket_path=Path(path), **options))


@pytest.mark.parametrize("compress", [False, True])
def test_all_questions_are_answered(server, compress):
    for data, is_spam in ((SPAM, True), (HAM, False)):
        for name in ("check", "headers", "process", "report", "report_if_spam", "symbols"):
            found = call(server.spamd, name, data, compress=compress, user="ann")
            assert found.status_code == 0, name
            assert found.headers.spam.value is is_spam, name
            assert (found.headers.spam.score >= 5) is is_spam
            assert found.headers.spam.threshold == 5
    large = SPAM + b"buy cheap pills now\n" * 50_000
    assert call(server.spamd, "process", large, compress=compress).body.endswith(large)
    assert call(server.spamd, "ping").message == "PONG"


@pytest.mark.parametrize("compress", [False, True])
def test_lessons_are_told_done_if_they_are(server, compress):
    def tell(*arguments):
        return call(server.spamd, "tell", LESSON, *arguments, compress=compress).headers

    assert "DidSet" in tell("spam", None, "local")
    assert "DidSet" not in tell("spam", None, "local")  # known already
    assert "DidSet" in tell("ham", None, "local")
    assert "DidRemove" in tell("ham", "local", None)
    assert "DidRemove" not in tell("ham", "local", None)
    assert "DidSet" not in tell("spam", None, "remote")


def test_refusals_are_exceptions(server, own_model, tmp_path):
    from aiospamc import responses as errors

    with pytest.raises(errors.ProtocolException, match="Set and Remove name the same"):
        call(server.spamd, "tell", LESSON, "spam", "local", "local")
    with serving(own_model, tmp_path, "--jobs", "1", limits={"waiting": 0}) as served:
        with pytest.raises(errors.TemporaryFailureException, match="too many messages"):
            call(served.spamd, "check", SPAM)
        with pytest.raises(errors.UnavailableException, match="TELL is not allowed"):
            call(served.spamd, "tell", LESSON, "spam", None, "local")
