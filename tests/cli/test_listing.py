"""`nbspam allow` and `nbspam deny`, and what all that judge make of them."""

import json

import pytest

from support import HAM, SPAM, complains

SENDER = "x@example.com"  # of SPAM
SIGNED = b"Authentication-Results: mx.example.org; dkim=pass header.d=example.com\n" + SPAM


def label(nbspam, data):
    return nbspam("classify", stdin=data)[1].split("\t")[0]


def test_an_allowed_sender_is_ham_if_the_trusted_server_says_that_it_is_genuine(nbspam, trained):
    assert label(nbspam, SIGNED) == "spam"
    status, out, err = nbspam("allow", SENDER)
    assert (status, out) == (0, f"allow\t{SENDER}\n")
    assert err.endswith(
        "no server is trusted, so that allowed senders are a hint only; give --trust SERVER\n"
    )
    assert nbspam("allow", "--trust", "mx.example.org")[0] == 0
    assert label(nbspam, SIGNED) == "ham"

    (line,) = [line for line in nbspam("explain", stdin=SIGNED)[1].splitlines() if "-40" in line]
    assert f"allow {SENDER} (mx.example.org says" in line
    assert nbspam("filter", stdin=SIGNED)[1].startswith("X-Nbspam: ham, probability=1.000000")
    assert "allow x@example.com" in nbspam("filter", "--explain", stdin=SIGNED)[1]
    shown = json.loads(nbspam("allow", "--json")[1])
    assert shown["lists"] == f"{trained}.lists"
    assert (shown["trust"], shown["allow"], shown["deny"]) == ("mx.example.org", [SENDER], [])

    assert nbspam("deny")[1] == f"allow\t{SENDER}\ntrust\tmx.example.org\n"

    assert nbspam("allow", "--forget", SENDER)[0] == 0
    assert complains(
        nbspam("allow", "--forget", SENDER), 0, f"--forget {SENDER}: not on the lists"
    )
    assert label(nbspam, SIGNED) == "spam"


def test_a_denied_domain_is_spam_whoever_signs(nbspam, trained):
    data = b"From: ann@lunch.example.com\n" + HAM
    assert label(nbspam, data) == "ham"
    assert nbspam("deny", "Example.com", "list:news.example")[0] == 0
    assert label(nbspam, data) == "spam"
    assert nbspam("deny")[1] == "deny\texample.com\ndeny\tlist:news.example\n"


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (
            ["allow", "a b"],
            1,
            "a b: no address; write ann@example.org, example.org, list:ID or to",
        ),
        (["deny", "nobody"], 1, "nobody: no address; write ann@example.org, example.org, list:ID"),
        (["deny", "--forget"], 2, "--forget: no address; name those to take off the list"),
    ],
)
def test_what_is_no_address_is_refused(nbspam, trained, words, status, why):
    assert complains(nbspam(*words), status, why)


def test_a_damaged_list_is_told_by_its_line(nbspam, trained):
    trained.with_name(f"{trained.name}.lists").write_text("allow a@b\nnonsense\n")
    why = f"{trained}.lists:2: neither allow nor deny ADDRESS, nor trust SERVER"
    assert complains(nbspam("classify", stdin=SPAM), 1, why)
