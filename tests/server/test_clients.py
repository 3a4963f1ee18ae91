"""The clients that mail systems really use, against a server that runs; see also test_spamc."""

import json
import re
import shutil
import subprocess

import pytest

from serving import PATIENCE, ask, connected, rest_of
from support import HAM, SPAM


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


# ---- other clients of spamd, by their text ----


def test_exim_of_spamassassin(server):
    head = b"REPORT SPAMC/1.2\r\nUser: nobody\r\nContent-length: %d\r\n\r\n" % len(SPAM)
    answer = ask(server.spamd, head + SPAM)
    # As Exim reads it: sscanf("SPAMD/%s 0 EX_OK\r\nContent-length: ..." or directly "Spam:".
    found = re.match(
        rb"SPAMD/\d\.\d 0 EX_OK\r\nSpam: (True|False) ; (\d+\.\d) / (5\.0)\r\n\r\n", answer
    )
    assert found[1] == b"True"
    assert b"probability of spam" in answer[found.end() :]
    assert len(answer) < 32_600


def test_amavis(server):
    # Its SpamdClient puts the envelope before the message, and counts it.
    data = b"Return-Path: <a@b.example>\r\nX-Envelope-To: <c@d.example>\r\n"
    data += SPAM.replace(b"\n", b"\r\n")
    request = b"SYMBOLS SPAMC/1.3\r\nContent-Length: %d\r\nUser: amavis\r\n\r\n" % len(data)
    with connected(server.spamd) as client:
        client.sendall(request + data)
        answer = rest_of(client)
    assert re.fullmatch(
        rb"SPAMD/1\.1 0 EX_OK\r\nContent-length: 20\r\nSpam: True ; \d+\.\d / 5\.0\r\n\r\n"
        rb"BAYES_95,NBSPAM_SPAM",
        answer,
    )


# ---- rspamc ----


@pytest.fixture
def rspamc(server, tmp_path):
    """Run rspamc: (*words, data) -> (status, output)."""

    def call(*words, data=SPAM):
        command = ["rspamc", "-h", f"127.0.0.1:{server.http}", *words]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=PATIENCE
        )
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    return call


@needs("rspamc")
def test_rspamc_asks_for_a_verdict_and_prints_json_mail_and_what_the_server_has_done(rspamc):
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


@needs("rspamc")
def test_rspamc_teaches_with_the_password_only(rspamc):
    lesson = b"Subject: of rspamc\n\nabout clouds and wings\n"
    assert "HTTP error: 401" in rspamc("-P", "guess", "learn_spam", data=lesson)[1]
    assert "HTTP error: 401" in rspamc("learn_ham", data=lesson)[1]
    status, out = rspamc("-P", "open sesame", "learn_spam", data=lesson)
    assert status == 0
    assert "success = true" in out
    assert "success = true" in rspamc("-P", "open sesame", "learn_ham", data=lesson)[1]


# ---- miltertest ----

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
