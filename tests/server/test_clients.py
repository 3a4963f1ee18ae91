"""The clients that mail systems really use, against a server that runs: spamc, rspamc, others."""

import json
import re
import shutil
import subprocess
import zlib

import pytest

from serving import PATIENCE, ask, check, connected, rest_of
from support import HAM, SPAM

MINE = b"Subject: a lesson of mine\n\nabout harbours and anchors\n"


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture
def spamc(server):
    """Run spamc: (*switches, data) -> (status, output)."""

    def call(*switches, data=SPAM, socket=None):
        command = ["spamc", "-U", socket or server.spamd, *switches]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, timeout=PATIENCE
        )
        return done.returncode, done.stdout

    return call


# ---- spamc ----


@needs("spamc")
def test_spamc_asks_for_a_verdict(spamc):
    status, out = spamc("-c")
    assert status == 1
    assert re.fullmatch(rb"\d+\.\d/5\.0\n", out)
    assert float(out.split(b"/")[0]) >= 5
    status, out = spamc("-c", data=HAM)
    assert status == 0
    assert float(out.split(b"/")[0]) < 5


@needs("spamc")
def test_spamc_exits_1_for_spam_if_asked(spamc):
    assert spamc("-E")[0] == 1
    assert spamc("-E", data=HAM)[0] == 0


@needs("spamc")
def test_spamc_lists_rules(spamc):
    assert spamc("-y")[1] == b"BAYES_99,NBSPAM_SPAM"


@needs("spamc")
def test_spamc_gets_reports_of_all_and_of_spam_only(spamc):
    status, out = spamc("-R")
    assert status == 0
    assert re.match(rb"\d+\.\d/5\.0\n", out)
    assert b"spam, probability of spam 0.9" in out
    assert b"\r\n  +1.9  http\r\n" in out
    assert spamc("-r")[1].endswith(out.partition(b"\n")[2])
    assert b"probability" in spamc("-R", data=HAM)[1]
    assert b"probability" not in spamc("-r", data=HAM)[1]


@needs("spamc")
def test_spamc_filters_a_message(spamc):
    forged = b"X-Spam-Status: No, surely\n" + SPAM
    status, out = spamc(data=forged)
    assert status == 0
    assert out.startswith(b"X-Nbspam: spam, probability=0.9")
    assert b"\nX-Spam-Flag: YES\n" in out
    assert out.endswith(SPAM)
    assert b"surely" not in out


@needs("spamc")
def test_spamc_gets_the_head_only(spamc):
    status, out = spamc("--headers")
    assert status == 0
    # spamc itself puts the body behind it again.
    assert out == spamc()[1]


@needs("spamc")
def test_spamc_pings(spamc):
    assert spamc("-K", data=b"") == (0, b"SPAMD/1.5 0\n")


@needs("spamc")
def test_spamc_teaches_and_takes_back(spamc):
    assert spamc("-L", "spam", data=MINE)[1] == b"Message successfully un/learned\n"
    assert spamc("-L", "spam", data=MINE)[1] == b"Message was already un/learned\n"
    assert spamc("-L", "ham", data=MINE)[1] == b"Message successfully un/learned\n"
    assert spamc("-L", "forget", data=MINE)[1] == b"Message successfully un/learned\n"
    assert spamc("-L", "forget", data=MINE)[1] == b"Message was already un/learned\n"


@needs("spamc")
def test_spamc_reports_are_no_lessons_here(spamc):
    # -C reports to a network of others; nothing is done, and that is what spamc is told.
    status, out = spamc("-C", "report", data=MINE)
    assert status == 0
    assert out == b"Unable to report/revoke message\n"


@needs("spamc")
def test_spamc_does_not_ask_about_what_it_finds_too_large(spamc):
    assert spamc("-s", "100", "-c", data=SPAM * 9) == (0, b"0/0\n")


@needs("spamc")
def test_spamc_says_whose_mail_it_is(spamc, server):
    assert spamc("-u", "ann", "-c")[0] == 1
    assert "user=ann asked=CHECK verdict=spam" in server.errors.read_text()


@needs("spamc")
def test_spamc_lets_mail_pass_if_the_server_is_gone_unless_told(spamc, tmp_path):
    gone = str(tmp_path / "gone")
    assert spamc(socket=gone) == (0, SPAM)
    assert spamc("-c", socket=gone) == (0, b"0/0\n")
    assert spamc("-x", "-c", socket=gone)[0] in {69, 70}  # no socket, or nobody behind it


@needs("spamc")
def test_spamc_passes_arguments_to_a_program(spamc, tmp_path):
    assert spamc("-e", "/bin/cat")[1].endswith(SPAM)


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


def test_exim_of_rspamd_leaves_its_side_open(server):
    head = b"CHECK RSPAMC/1.3\r\nContent-length: %d\r\nQueue-Id: 1a-2b\r\n" % len(SPAM)
    head += b"From: <a@b.example>\r\nRecipient-Number: 1\r\nRcpt: <c@d.example>\r\n"
    head += b"Helo: x.example\r\nHostname: x.example\r\nIP: 192.0.2.1\r\nUser: nobody\r\n\r\n"
    with connected(server.spamd) as client:
        client.sendall(head + SPAM)
        answer = rest_of(client)
    found = re.match(
        rb"RSPAMD/1\.3 0 EX_OK\r\nMetric: default; (\S+); (\S+) / (\S+) / (\S+)\r\n"
        rb"Action: ([^\r]*)\r\n",
        answer,
    )
    assert found.groups()[0] == b"True"
    assert float(found[2]) >= float(found[3]) == 5
    assert found[5] == b"add header"


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


def test_a_client_that_compresses(server):
    packed = zlib.compress(SPAM)
    answer = ask(server.spamd, check(packed, "PROCESS", "1.5", "Compress: zlib"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Spam: True" in head
    assert b"Content-length: %d" % len(body) in head
    assert body.endswith(SPAM)


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
def test_rspamc_asks_for_a_verdict(rspamc):
    status, out = rspamc("symbols")
    assert status == 0
    assert "Action: add header" in out
    assert re.search(r"Score: \d+\.\d\d / 5\.00", out)
    assert "Symbol: NBSPAM_SPAM" in out
    assert "Action: no action" in rspamc("symbols", data=HAM)[1]


@needs("rspamc")
def test_rspamc_prints_json_and_mail(rspamc):
    found = json.loads(rspamc("-j", "symbols")[1])
    assert found["action"] == "add header"
    out = rspamc("--mime")[1]
    assert "X-Spam: yes" in out
    assert "X-Spam-Action: add header" in out


@needs("rspamc")
def test_rspamc_teaches_with_the_password_only(rspamc):
    lesson = b"Subject: of rspamc\n\nabout clouds and wings\n"
    assert "HTTP error: 401" in rspamc("-P", "guess", "learn_spam", data=lesson)[1]
    assert "HTTP error: 401" in rspamc("learn_ham", data=lesson)[1]
    status, out = rspamc("-P", "open sesame", "learn_spam", data=lesson)
    assert status == 0
    assert "success = true" in out
    assert "success = true" in rspamc("-P", "open sesame", "learn_ham", data=lesson)[1]


@needs("rspamc")
def test_rspamc_prints_what_the_server_has_done(rspamc):
    status, out = rspamc("stat")
    assert status == 0
    assert int(re.search(r"Messages scanned: (\d+)", out)[1]) > 0


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
