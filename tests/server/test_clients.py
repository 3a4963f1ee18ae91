"""The clients that mail systems really use, against a server that runs; see also test_spamc."""

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from serving import PATIENCE, serving
from support import HAM, LESSON, SPAM, needs


@needs("rspamc")
def test_rspamc_asks_for_a_verdict_and_prints_json_mail_and_what_the_server_has_done(server):
    def rspamc(*words, data=SPAM):
        command = ["rspamc", "-h", f"127.0.0.1:{server.http}", *words]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=PATIENCE
        )
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    status, out = rspamc("symbols")
    assert status == 0
    assert "Action: add header" in out
    assert re.search(r"Score: \d+\.\d\d / 5\.00", out)
    assert "Symbol: NBSPAM_SPAM" in out
    assert "Action: no action" in rspamc("symbols", data=HAM)[1]
    assert json.loads(rspamc("-j", "symbols")[1])["action"] == "add header"
    out = rspamc("--mime")[1]
    assert "X-Spam: yes" in out
    assert "X-Spam-Action: add header" in out
    status, out = rspamc("stat")
    assert status == 0
    assert int(re.search(r"Messages scanned: (\d+)", out)[1]) > 0

    # It teaches with the password only; the tests of docs/howto/serve.md give the right one.
    refused = "HTTP error: 401, the header Password is missing or wrong\n"
    assert refused in rspamc("-P", "guess", "learn_spam")[1]


SCRIPT = """
local function expect(found, wanted, what)
    if found ~= wanted then error(what .. ": " .. tostring(found)) end
end
conn = mt.connect("inet:{port}@127.0.0.1")
if conn == nil then error("no connection") end
expect(mt.conninfo(conn, "localhost", "127.0.0.1"), nil, "conninfo")
mt.macro(conn, SMFIC_MAIL, "i", "QQ123")
expect(mt.mailfrom(conn, "a@b.example"), nil, "mailfrom")
expect(mt.rcptto(conn, "c@d.example"), nil, "rcptto")
mt.header(conn, "From", "x@example.com")
mt.header(conn, "X-Spam-Status", "No, forged")
mt.header(conn, "Subject", "cheap pills")
mt.eoh(conn)
mt.bodystring(conn, "buy cheap pills now http://p.example/\\r\\n")
expect(mt.eom(conn), nil, "eom")
expect(mt.getreply(conn), SMFIR_CONTINUE, "reply")
expect(mt.eom_check(conn, MT_HDRINSERT, "X-Nbspam"), true, "our header")
expect(mt.eom_check(conn, MT_HDRINSERT, "X-Spam-Flag", " YES"), true, "the flag")
expect(mt.eom_check(conn, MT_HDRINSERT, "X-Spam-Status"), true, "the status")
expect(mt.eom_check(conn, MT_HDRDELETE, "X-Spam-Status"), true, "the forged status")
mt.disconnect(conn)
"""


@needs("miltertest")
def test_miltertest(server, tmp_path):
    (tmp_path / "script.lua").write_text(SCRIPT.replace("{port}", str(server.milter)))
    done = subprocess.run(
        ["miltertest", "-s", tmp_path / "script.lua"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---- aiospamc, for programs in Python, with compression and without ----


def call(path, name, *arguments, **options):
    """Return the answer to a call of aiospamc's; path: of the server's socket."""
    aiospamc = pytest.importorskip("aiospamc", reason="aiospamc is not installed")
    function = getattr(aiospamc, name)
    return asyncio.run(function(*arguments, socket_path=Path(path), **options))


@pytest.mark.slow
@pytest.mark.parametrize("compress", [False, True])
def test_aiospamc_gets_all_questions_answered(server, compress):
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


@pytest.mark.slow
@pytest.mark.parametrize("compress", [False, True])
def test_aiospamc_is_told_that_lessons_are_done_if_they_are(server, compress):
    def tell(*arguments):
        return call(server.spamd, "tell", LESSON, *arguments, compress=compress).headers

    assert "DidSet" in tell("spam", None, "local")
    assert "DidSet" not in tell("spam", None, "local")  # known already
    assert "DidSet" in tell("ham", None, "local")
    assert "DidRemove" in tell("ham", "local", None)
    assert "DidRemove" not in tell("ham", "local", None)
    assert "DidSet" not in tell("spam", None, "remote")


@pytest.mark.slow
def test_refusals_are_exceptions_of_aiospamc(server, own_model, tmp_path):
    errors = pytest.importorskip("aiospamc.responses", reason="aiospamc is not installed")

    with pytest.raises(errors.ProtocolException, match="Set and Remove name the same"):
        call(server.spamd, "tell", LESSON, "spam", "local", "local")
    with serving(own_model, tmp_path, "--jobs", "1", limits={"waiting": 0}) as served:
        with pytest.raises(errors.TemporaryFailureException, match="too many messages"):
            call(served.spamd, "check", SPAM)
        with pytest.raises(errors.UnavailableException, match="TELL is not allowed"):
            call(served.spamd, "tell", LESSON, "spam", None, "local")
