"""Lists of senders, domains, mailing lists and recipients: what a line needs to count."""

import math
import time

import pytest

from nbspam.decision import Cutoffs
from nbspam.errors import InputError, ModelFileError, UsageError
from nbspam.mail import addresses
from nbspam.mail.addresses import CERTAIN, HINT, AddressLists, ListMatch, change_lists, read_lists
from nbspam.verdicts import Evidence, Explanation, Verdict
from stored import full_disk
from support import memory_of

RULE = Cutoffs(0.5, 0.5)
DKIM, DMARC = "dkim=pass header.d=shop.example", "dmarc=pass header.from=shop.example"
SPF = "spf=pass smtp.mailfrom=news@shop.example"


def mail(*results, sender="Shop <news@shop.example>", server="mx.example.org", list_id=""):
    checks = f"Authentication-Results: {'; '.join([server, *results])}\n" if results else ""
    more = f"List-Id: {list_id}\n" if list_id else ""
    return f"{checks}From: {sender}\n{more}Subject: hi\n\nhello\n".encode()


def shift(lines, data, recipient="", trusted="mx.example.org"):
    """Return the nats that lists add; lines: as "allow a@b, deny c"."""
    verbs = {key: verb for verb, key in (line.split() for line in lines.split(", "))}
    match = AddressLists(verbs, trusted).match(data, recipient)
    return 0.0 if match is None else match.shift


@pytest.mark.parametrize(("line", "data", "recipient", "spam", "label"), [
    ("allow shop.example", mail(DKIM), "", 0.0009, "ham"),
    ("allow shop.example", mail(DKIM), "", 0.0011, None),
    ("allow shop.example", mail(DKIM), "", 0.9999, None),
    ("allow shop.example", mail(), "", 0.0009, None),
    ("allow shop.example", mail(DKIM, server="mx.evil.example"), "", 0.0009, None),
    ("deny shop.example", mail(DKIM), "", 0.9991, "spam"),
    ("deny shop.example", mail(), "", 0.9991, None),
    ("deny shop.example", mail(DKIM), "", 0.0001, None),
    # Who receives is known, who sends is not: a trap for spam, but no proof of ham.
    ("deny to:trap@here.example", mail(), "trap@here.example", 0.9991, "spam"),
    ("allow to:ann@here.example", mail(DKIM), "ann@here.example", 0.0001, None),
])  # fmt: skip
def test_a_true_line_and_a_sure_verdict_that_agree_teach(line, data, recipient, spam, label):
    verb, key = line.split()
    match = AddressLists({key: verb}, "mx.example.org").match(data, recipient)
    assert addresses.autolearned(match, spam) == label


@pytest.mark.parametrize(("lines", "data", "nats"), [
    # A sender or domain is allowed if the trusted server vouches for its domain ...
    ("allow news@shop.example", mail(DKIM), -CERTAIN),
    ("allow news@shop.example", mail(SPF), -CERTAIN),
    ("allow shop.example", mail(DKIM), -CERTAIN),
    ("allow shop.example", mail(DKIM, sender="a@mail.shop.example"), -CERTAIN),
    ("allow news@shop.example", mail(DMARC), -CERTAIN),
    # ... and anything else is a hint: no result, a failed one, another domain's, a stranger's.
    ("allow news@shop.example", mail(), -HINT),
    ("allow news@shop.example", mail("dkim=fail header.d=shop.example"), -HINT),
    ("allow news@shop.example", mail("dkim=pass header.d=evil.example"), -HINT),
    ("allow news@shop.example", mail("dkim=pass header.d=op.example"), -HINT),
    ("allow news@shop.example", mail(DKIM, server="mx.evil.example"), -HINT),
    ("allow news@shop.example", mail(DKIM, "dmarc=fail header.from=shop.example"), -HINT),
    ("allow news@shop.example", mail(DKIM, sender="news@shop.example, x@evil.example"), -HINT),
    ("allow news@shop.example", mail("dmarc=pass header.from=e.example",
     sender="x@e.example (a (b) <news@shop.example>)"), -HINT),
    ("allow news@shop.example", b"A: b\r" + mail(DKIM), -HINT),  # no server takes for a header
    # Others are not meant.
    ("allow news@shop.example", mail(DKIM, sender="other@shop.example"), 0),
    ("allow shop.example", mail(DKIM, sender="a@myshop.example"), 0),
    ("allow shop.example", mail(DKIM, sender='"news@shop.example" <x@evil.example>'), 0),
    # What is denied needs no proof, and the more exact line counts.
    ("deny shop.example", mail(), CERTAIN),
    ("deny shop.example", b"X: y\n" * 20_000 + mail(), CERTAIN),
    ("deny shop.example, allow news@shop.example", mail(DKIM), -CERTAIN),
    ("allow shop.example, deny news@shop.example", mail(DKIM), CERTAIN),
    ("allow example, deny shop.example", mail(DKIM), CERTAIN),
    # A mailing list is known by its List-Id, and by who signs for its domain.
    ("allow list:dev.l.example", mail(list_id="Dev <dev.l.example>"), -HINT),
    ("allow list:dev.l.example",
     mail("dkim=pass header.d=l.example", list_id="Dev <Dev.L.example>"), -CERTAIN),
    ("allow list:dev.l.example", mail(DMARC, list_id="<dev.l.example>"), -HINT),
    ("deny list:dev.l.example", mail(list_id="dev.l.example"), CERTAIN),
    # A domain with other letters is the one that DNS has.
    ("deny xn--tda.example", mail(sender="x@Ü.example"), CERTAIN),
    ("deny list:xn--tda.example", mail(list_id="<Ü.example>"), CERTAIN),
    ("allow x@xn--tda.example",
     mail("dkim=pass header.d=xn--tda.example", sender="x@ü.example"), -CERTAIN),
])  # fmt: skip
def test_what_a_line_adds(lines, data, nats):
    assert shift(lines, data) == nats


def test_a_domain_of_thousands_of_labels_takes_little_memory():
    data = mail(sender=f"x@{'a.' * 30_000}shop.example")
    assert memory_of(shift, "deny shop.example", data)[1] < 10 << 20
    assert shift("deny shop.example", data) > 0


@pytest.mark.parametrize("value", [".", "<", "< ", "a ", "<a "])
def test_no_long_name_of_a_list_takes_long(value):
    start = time.process_time()
    shift("allow a@b.example", mail(list_id=f"{value * 60_000} x y"))
    assert time.process_time() - start < 1


def test_a_recipient_is_whom_the_mail_system_names():
    data = b"To: old@example.org\n" + mail()
    assert shift("deny to:old@example.org", data) == 0
    assert shift("deny to:old@example.org", data, "old@example.org") == CERTAIN
    why = "the mail system names the recipient"
    lists = AddressLists({"to:old@example.org": "allow"})
    found = lists.match(data, "old@example.org")
    assert found == ListMatch("allow to:old@example.org", -CERTAIN, why)
    found = lists.match(mail(sender="<to:old@example.org>"))  # as a stranger calls itself
    assert found is not None
    assert found.shift == -HINT


def test_without_a_trusted_server_nobody_is_allowed_for_certain():
    assert shift("allow news@shop.example", mail(DKIM), trusted=None) == -HINT
    lists = AddressLists({"news@shop.example": "allow"})
    assert lists.trusting("mx.example.org").match(mail(DKIM)).shift == -CERTAIN  # the model's


@pytest.mark.parametrize("spam", [0.0, 0.3, 0.999999, 1.0])
def test_a_line_is_one_more_reason_and_the_sum_still_adds_up(spam):
    verdict = Verdict("-", "spam", {"ham": 1 - spam, "spam": spam}, score=1.5)
    rows = (Evidence("pills", 1.0, "text", (0.0, 9.0)),)
    found = Explanation(verdict, "spam", "ham", 1.5, 0.5, rows)
    turned = Explanation(verdict, "ham", "spam", 1.5, 0.5, rows)
    for match in (ListMatch("allow a@b", -CERTAIN, "because"), ListMatch("deny b", CERTAIN, "so")):
        told = addresses.listed_explanation(found, match, RULE)
        assert told.verdict == addresses.listed_verdict(verdict, match, RULE)
        assert told.verdict.label == ("ham" if match.shift < 0 else "spam")
        assert told.score == told.constant + sum(row.contribution for row in told.evidence)
        assert told.verdict.score == 1.5 + match.shift
        assert told.evidence[0][:2] == (f"{match.line} ({match.why})", match.shift)
        told = addresses.listed_explanation(turned, match, RULE)
        assert told.evidence[0].contribution == -match.shift


def test_a_hint_moves_the_odds_by_its_nats_and_no_more():
    verdict = Verdict("-", "spam", {"ham": 0.1, "spam": 0.9})
    told = addresses.listed_verdict(verdict, ListMatch("allow a@b", -HINT, "a hint"), RULE)
    odds = told.posterior["spam"] / told.posterior["ham"]
    assert math.isclose(math.log(9) - math.log(odds), HINT)


def test_the_file_is_read_as_it_is_written_and_comments_are_left_out(tmp_path):
    model = str(tmp_path / "m.nbspam")
    assert read_lists(model) is None
    (tmp_path / "m.nbspam").touch(0o640)
    lists = AddressLists({"a@b.example": "allow", "list:x.example": "deny"}, "mx.example")
    change_lists(model, ["a@b.example"], "allow", trust="mx.example")
    assert change_lists(model, ["list:x.example"], "deny") == lists
    assert read_lists(model) == lists
    assert change_lists(model, ["a@b.example"], None).trusted == "mx.example"
    assert change_lists(model, [], None, trust="mx.other.example").trusted == "mx.other.example"
    assert (tmp_path / "m.nbspam.lists").stat().st_mode & 0o777 == 0o640  # as the model
    hand_written = "# mine\u2028deny x@y.example\n\r\nallow  Ann@Example.org  # a friend\n"
    (tmp_path / "m.nbspam.lists").write_bytes(hand_written.encode())
    assert read_lists(model) == AddressLists({"ann@example.org": "allow"})


def test_lists_that_a_full_disk_refuses_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("nbspam.disk.replacing", full_disk)
    said = r"m\.lists: cannot be written: No space left on device; free some space, or give"
    with pytest.raises(ModelFileError, match=said):
        change_lists(str(tmp_path / "m"), ["a@b.example"], "allow")


@pytest.mark.parametrize("line", ["permit a@b", "allow", "allow a b", "deny a@b@c", "trust"])
def test_a_line_that_is_none_is_told_by_its_number(tmp_path, line):
    (tmp_path / "m.lists").write_text(f"allow a@b\n{line}\n")
    with pytest.raises(InputError, match=r"m\.lists:2: neither allow nor deny ADDRESS"):
        read_lists(str(tmp_path / "m"))


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a@b@c", "list:", "@", "nobody", "a#x@b.example", "com#x.example",
     "list:<x.example", "\udcff@b.example", "ann@*", "*example.org"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError, match=r"no address; write ann@example\.org"):
        addresses.checked_address(text)


@pytest.mark.parametrize(("text", "listed"), [
    *((f"{sign}shop.example", "shop.example") for sign in ("*@", "*.", ".", " @")),
    ("<.Ann@Shop.Example>", ".ann@shop.example"),
    ("list:<X.Example>", "list:x.example"),
    ("x@Ü.example", "x@xn--tda.example"),
    ("to:Ü.example", "to:xn--tda.example"),
    (f"{'ü' * 300}.example ", f"{'ü' * 300}.example"),  # no domain of DNS
])  # fmt: skip
def test_an_address_has_one_form_in_lists(tmp_path, text, listed):
    assert addresses.checked_address(text) == listed
    if "<" not in text:  # a file holds no address as headers have it
        (tmp_path / "m.lists").write_text(f"deny {text}\n")
        assert [*read_lists(str(tmp_path / "m")).verbs] == [listed]


@pytest.mark.parametrize("server", ["", "a b", "mx#1", "mx\nallow com", "mx\udcff", "mx;x"])
def test_what_is_no_server_is_refused_before_a_line_is_written(tmp_path, server):
    model = str(tmp_path / "m")
    with pytest.raises(
        UsageError, match=r"(?s)--trust .*: no name of a server; give the first word"
    ):
        change_lists(model, [], None, trust=server)
    assert read_lists(model) is None


@pytest.mark.parametrize(("head", "sender"), [
    ("From: Ann <Ann@Example.ORG>", "ann@example.org"), ("Subject: nobody", None),
    ("From: ann@a.example, bob@b.example", None),
    ("From: com#x@evil.example", None),  # a line would deny all of com
    ("From: ann", None), ("From: to:ann@example.org", None), ("From: <\xff@example.org>", None),
    ("From: <a\x01b@example.org>", None),
])  # fmt: skip
def test_the_sender_of_a_message_is_one_that_a_line_holds(tmp_path, head, sender):
    data = head.encode("latin-1") + b"\n\nx\n"
    assert addresses.sender_of(data) == sender
    if sender is not None:
        model = str(tmp_path / "m")
        assert change_lists(model, [sender], "deny").match(data).line == f"deny {sender}"
        assert read_lists(model).match(data).line == f"deny {sender}"
        assert change_lists(model, [sender], None).match(data) is None


def test_long_lists_are_read_and_written_whole(tmp_path):
    model = str(tmp_path / "m")
    lines = [f"deny x{number}.example\n" for number in range(100_001)]
    (tmp_path / "m.lists").write_text("".join(lines))
    assert len(change_lists(model, ["a@b.example"], "allow").verbs) == 100_002
    assert len(read_lists(model).verbs) == 100_002


def test_lists_in_use_are_read_again_when_they_change(tmp_path):
    in_use, site, own = addresses.ListsInUse(), str(tmp_path / "site"), str(tmp_path / "own")

    def line():
        found = [each.match(mail()) for each in map(in_use.beside, (own, site)) if each]
        return found[0] and found[0].line if found else None

    assert line() is None
    change_lists(site, ["shop.example"], "deny")
    assert line() == "deny shop.example"
    assert in_use.beside(site) is in_use.beside(site)
    change_lists(own, ["shop.example"], "allow")  # a user's come first
    assert line() == "allow shop.example"
    (tmp_path / "own.lists").unlink()
    assert line() == "deny shop.example"
    assert addresses.lists_path(own).endswith("own.lists")
