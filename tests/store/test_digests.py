"""Digests in models: two mails are two, and a copy of a mail is the same mail."""

from support import ROOT

MAIL = ROOT / "corpora" / "mail" / "ham" / "038-wrong-charset-label-menu.eml"


def test_a_copy_on_another_way_is_known_and_another_reading_of_the_same_bytes_is_not(
    nbspam, trained
):
    mail = MAIL.read_bytes()
    copies = (
        b"Received: from a by b\n\twith c\nReturn-Path: <x@example.org>\n" + mail,
        mail.replace(b"Subject:", b"X-Spam-Status: Yes, score=9\nSubject: [SPAM]"),
        mail.replace(b"\n", b"\r\n"),
        b"From MAILER-DAEMON Mon Jan  5 10:00:00 2026\n" + mail + b"\n\n",
    )
    assert nbspam("update", "--ham", "-", stdin=mail)[1] == "learned 1\n"
    for copy in copies:
        assert copy != mail
        assert nbspam("update", "--ham", "-", stdin=copy)[1] == "already known 1\n"

    other = mail.replace(b"text/plain", b"text/html", 1)
    assert nbspam("update", "--spam", "-", stdin=other)[1] == "learned 1\n"
    assert nbspam("update", "--ham", "-", stdin=mail)[1] == "already known 1\n"
