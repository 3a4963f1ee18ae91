"""Facts about the sender: what a head says, what sent mail tells, and hostile heads."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import UsageError
from nbspam.mail.addresses import Mailbox, read_correspondence
from nbspam.mail.headers import open_message
from nbspam.mail.message import parse_message
from nbspam.sent_mail import ADDRESS, FACTS, fact_in_words, sent_mail_of
from nbspam.settings import PRESETS, SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.tokens.definition import UNVOUCHED, group_of
from nbspam.tokens.people import knowing_sent_mail, learned_sent_mail, with_facts

SENT = b"""From: Anna <anna@home.example>
To: "Bob Smith" <bob@work.example>, carol@work.example
Cc: =?utf-8?q?D=C3=B6rte_Ku=C3=9F?= <doerte@else.example>, garden@lists.example
Date: Tue, 5 Jan 2021 10:00:00 +0000
Message-ID: <private-1@home.example>

Hello
"""
BEFORE, AFTER = b"Mon, 4 Jan 2021 10:00:00 +0000", b"Wed, 6 Jan 2021 10:00:00 +0000"
KNOWN = learned_sent_mail([Item("sent", None, SENT)])
SETTINGS = replace(PRESETS["mail"], sent_mail=KNOWN, authserv_id="mx.home.example")


def words(head: bytes, origin: str = "people") -> set[str]:
    data = head + b"\n\nbody"
    fields = with_facts(parse_message(data), open_message(data), SETTINGS).fields
    (text,) = [field.text for field in fields if field.origin == origin]
    return set(text.decode().split())


ANNA = b"To: anna@home.example\n"
ANSWER = ANNA + b"In-Reply-To: <private-1@home.example>\n"
FALSE = ANNA + b"References: <a@b>\n <made-up@home.example>\n"
OURS = b"Authentication-Results: mx.home.example; "
STRANGER = {"first-contact"}
THIEF = {"first-contact", "known-name-from-another-address"}


@pytest.mark.parametrize(("head", "facts"), [
    (b"From: Bob@Work.example", {"known-correspondent"}),
    (b"To: anna@home.example", STRANGER),
    (ANSWER + b"From: eve@spam.example", {"reply-from-a-stranger"} | STRANGER),
    (FALSE + b"From: bob@work.example", {"reply-to-nothing-from-a-known-address"}),
    (FALSE + b"Cc: eve@spam.example\nFrom: x@y.example", STRANGER),
    (b"From: Smith, Bob <eve@spam.example>", STRANGER),
    (b'From: "Smith, Bob" <eve@spam.example>', THIEF),
    (b'From: "B\\ob\\ Smith" <eve@spam.example>', THIEF),  # mail programs show no backslash
    ("From: Bоb Smith <eve@spam.example>".encode(), THIEF),  # a Cyrillic o
    (b"From: =?utf-8?b?QsO2YiBTbWl0aA==?= <eve@spam.example>", STRANGER),  # Böb
    (b'From: "bob@work.example" <eve@spam.example>', THIEF),
    (b"From: =?utf-8?q?bob=40work=2Eexample?= <eve@spam.example>", THIEF),
    (b"From: eve@spam.example (Bob Smith)", THIEF),
    (b"From: bob@work.example, eve@spam.example", STRANGER),
    (b"From: bob@work.example\nFrom: eve@spam.example", STRANGER),
    (b"From: Bob <bob@work.example> <eve@spam.example>", STRANGER),
])  # fmt: skip
def test_what_a_head_tells_of_its_sender(head, facts):
    assert words(head) == facts
    assert words(head.replace(b"\n", b"\r\n")) == facts
    assert facts <= FACTS.keys()


BOB = b"From: bob@work.example\n"
GENUINE, FORGEABLE = {"known-correspondent-authenticated"}, {"known-address-unauthenticated"}


@pytest.mark.parametrize(("results", "facts"), [
    (b"dmarc=pass", GENUINE),
    (b"dmarc=pass; dmarc=fail", FORGEABLE),
    (b"dmarc=pass (p=none) header.from=work.example", GENUINE),
    (b"dmarc=pass header.from=bulk.example", FORGEABLE),  # reads another sender than we do
    (b"dmarc=fail; dkim=pass header.d=work.example", FORGEABLE),
    (b"dmarc=none; dkim=pass header.d=Work.Example header.s=x", GENUINE),
    (b"dkim=pass header.i=@work.example", FORGEABLE),  # not the domain that signed
    (b"dkim=pass header.d=example", GENUINE),  # a domain above it
    (b"dkim=pass header.d=rk.example", FORGEABLE),
    (b"spf=pass smtp.mailfrom=bounce@work.example", GENUINE),
    (b"spf=pass smtp.mailfrom=bounce@bulk.example", FORGEABLE),
    (b'spf=pass smtp.mailfrom="b@work.example"', GENUINE),
    (b'spf=pass smtp.mailfrom="b@work.example"@bulk.example', FORGEABLE),
    (b'spf=pass smtp.mailfrom="work.example b"@bulk.example', FORGEABLE),
    (b"spf=pass smtp.mailfrom=b@work.example@bulk.example", FORGEABLE),
    (b"spf=pass", FORGEABLE),
])  # fmt: skip
def test_a_known_address_counts_as_far_as_the_own_server_vouches_for_it(results, facts):
    head = OURS + results + b"\n" + BOB
    assert words(head) == facts
    assert words(head.replace(b"mx.home", b"mx.else")) == {"known-correspondent"}
    answer = words(head + ANSWER)
    assert answer == {"reply-to-you"} | facts  # nobody else knows the id
    false = {"reply-to-nothing"} if facts == FORGEABLE else set()
    assert words(head + FALSE) == facts | false
    assert words(OURS + results + b"\nFrom: eve@spam.example") == STRANGER
    two = BOB.replace(b"\n", b", Carol@work.example\n")
    assert words(OURS + results + b"\n" + two) == FORGEABLE


def test_a_message_is_judged_as_it_arrived():
    bob = b"\nFrom: Bob Smith <bob@work.example>"
    assert words(b"Date: " + BEFORE + bob) == STRANGER
    assert words(b"Date: " + AFTER + bob) == {"known-correspondent"}
    received = b"Received: from x by y; " + BEFORE + b"\nReceived: by z; " + AFTER
    assert words(received + b"\nDate: " + AFTER + bob) == STRANGER  # the topmost is our server's
    assert words(b"Date: no day" + bob) == {"known-correspondent"}


@pytest.mark.parametrize(("head", "results"), [
    (OURS + b"spf=pass smtp.mailfrom=x; dkim=fail; dmarc=none", "spf-pass dkim-fail dmarc-none"),
    (OURS + b"iprev=pass; SPF = SoftFail (a; spf=pass)", "spf-softfail"),
    (OURS + b'dkim=pass reason="x; spf=pass"; arc=pass', "dkim-pass arc-pass"),
    (b"authentication-results: MX.home.example 1;\n dkim/1=temperror", "dkim-temperror"),
    (b"Authentication-Results: (c) mx.home.example; spf=pass", "spf-pass"),
    (b"Authentication-Results: mx.home.example.evil; spf=pass", ""),
    (b"Authentication-Results: other; spf=fail\n" + OURS + b"spf=pass", "spf-pass"),
    (OURS + b"spf=fail\n" + OURS + b"dkim=pass", "spf-fail"),  # the topmost only
    (OURS + b"(((spf=pass", ""),
    (OURS.replace(b":", b" :") + b"spf=pass", ""),
])  # fmt: skip
def test_results_of_the_own_server_alone_count(head, results):
    """RFC 8601; its section 5 has servers remove results in their name."""
    assert words(head, "auth") == set(results.split())
    assert read_correspondence(open_message(head)).checks("not UTF-8: \udcff") is None


@given(
    st.binary(max_size=300), st.sampled_from([b"From", b"References", b"Authentication-Results"])
)
def test_hostile_heads_never_raise(value, name):
    words(name + b": " + value)
    learned_sent_mail([Item("x", None, name + b": " + value)])
    assert len(read_correspondence(open_message(b"From: " + b"a@b," * 9)).mailboxes(b"from")) == 9


@pytest.mark.slow
def test_a_long_head_is_read_in_linear_time():
    for text in (b"<", b'"', b"(", b"\\", b"a@b ", b"=?", b"=?a?q?"):
        for name in (b"From", b"To", b"Authentication-Results", b"References"):
            words(name + b": " + text * 30_000)


@pytest.mark.parametrize("name", [b"x@ ", b'"A B" '])
def test_thousands_of_senders_of_one_long_name_take_no_time(name):
    start = time.process_time()
    assert words(b"From: " + name * 4000 + b"<a@>" * 8000) == STRANGER
    assert time.process_time() - start < 2


def test_mailboxes_of_groups_and_comments():
    head = read_correspondence(
        open_message(b"To: Friends: Ann Lee <a@x.example>, b@x.example (Ben Ray);\n\n")
    )
    assert head.mailboxes(b"to") == [
        Mailbox(b"Ann Lee", b"a@x.example"),
        Mailbox(b"Ben Ray", b"b@x.example"),
    ]


def test_facts_have_a_kind_of_their_own():
    assert group_of("people") == group_of("auth") != group_of("header")
    assert set(UNVOUCHED) < FACTS.keys()
    assert fact_in_words("people:reply-to-you") == FACTS["reply-to-you"]
    assert fact_in_words("auth:spf-pass") == "your server's check by SPF: pass"
    assert fact_in_words("people") is None


def test_texts_know_no_sender():
    settings = PRESETS["text"]
    assert knowing_sent_mail(settings, ()) is settings
    with pytest.raises(UsageError, match="--sent here: for mail, and this model is of texts"):
        knowing_sent_mail(settings, ["here"])
    with pytest.raises(UsageError, match="--authserv-id: for mail, and these are texts"):
        chosen_settings(SettingsChoices(authserv_id="mx"), is_text=True)


MESSAGES = [
    learned_sent_mail([Item("x", None, SENT.replace(b"private-1", b"%d" % n))]) for n in range(4)
]
SOME = st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=6)


@given(SOME, SOME)
def test_sent_mail_is_a_set(first, second):
    def total(parts):
        return sent_mail_of(message for part in parts for message in part.by_message())

    both = total(first).united(total(second))
    assert both == total([*second, *first]) == both.united(both)
    digests = [message.digest for part in first for message in part.by_message()]
    assert both.without(digests) == total(p for p in second if p not in first)
    assert bool(both.without(both.messages)) is False
    assert both.n_correspondents == 4
    assert both.since(ADDRESS, b"bob@work.example") == 1609840800  # 5 January 2021, 10:00 UTC
    assert both.was_sent_to(b"0@home.example", b"bob@work.example") == (
        MESSAGES[0] in first + second
    )
