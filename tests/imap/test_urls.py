import pytest

from nbspam.errors import UsageError
from nbspam.imap.urls import ImapUrl, imap_url

HOST = ("mail.example.org", 993)


@pytest.mark.parametrize(
    ("text", "url", "again"),
    [
        ("imaps://ann@mail.example.org", ImapUrl(True, "ann", *HOST), "imaps://ann@{}/"),
        ("IMAPS://ann@mail.example.org/", ImapUrl(True, "ann", *HOST), "imaps://ann@{}/"),
        (
            "imaps://ann%40example.org@mail.example.org/INBOX",
            ImapUrl(True, "ann@example.org", *HOST, "INBOX"),
            None,
        ),
        (
            "imaps://ann@example.org@mail.example.org/INBOX",
            ImapUrl(True, "ann@example.org", *HOST, "INBOX"),
            "imaps://ann%40example.org@{}/INBOX",
        ),
        (
            "imap://ann;AUTH=*@mail.example.org:1143/a/b%20c;UIDVALIDITY=7/;UID=3",
            ImapUrl(False, "ann", "mail.example.org", 1143, "a/b c", 7, 3),
            "imap://ann@{}:1143/a/b%20c;UIDVALIDITY=7/;UID=3",
        ),
        (
            "imaps://ann@[::1]/[Gmail]/Spam",
            ImapUrl(True, "ann", "::1", 993, "[Gmail]/Spam"),
            "imaps://ann@[::1]/%5BGmail%5D/Spam",
        ),
        (
            "imaps://ann@mail.example.org/%E5%9E%83%E5%9C%BE&\"'",
            ImapUrl(True, "ann", *HOST, "垃圾&\"'"),
            "imaps://ann@{}/%E5%9E%83%E5%9C%BE%26%22'",
        ),
    ],
)
def test_a_url_says_account_folder_and_message(text, url, again):
    assert imap_url(text) == url
    assert str(url) == (again or text).format("mail.example.org")
    assert imap_url(str(url)) == url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("imaps://mail.example.org/INBOX", "names no user"),
        ("imaps://ann@", "no URL of a mail account"),
        ("imaps://ann@mail.example.org:99999/", "no URL of a mail account"),
        ("imaps://ann@mail.example.org/a%0d%0aDELETE", "no URL of a mail account"),
    ],
)
def test_other_urls_are_usage_errors(text, words):
    with pytest.raises(UsageError, match=words):
        imap_url(text)


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(UsageError, match="--password-command") as caught:
        imap_url("imaps://ann:s3cret@mail.example.org/")
    assert "s3cret" not in str(caught.value)
