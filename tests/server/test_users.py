"""Users: names, folders, how each protocol names them, and models that only they notice."""

import asyncio
import gzip
import os
import time
import unicodedata
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maildirs import news
from nbspam.classifier.training import learn_items
from nbspam.decision import cutoffs
from nbspam.delivery.maildir import maildir_entries
from nbspam.errors import InputError, ModelFileError
from nbspam.server import judge
from nbspam.server.judge import BatchJudge, Judge, UserCounts, known_as, user_folder_name
from nbspam.server.lessons import TaughtModels, Teacher
from nbspam.server.metrics import ServerTally
from nbspam.server.milter import MilterConnection
from nbspam.server.page import mailbox
from nbspam.server.page.mailbox import Mailboxes
from nbspam.server.rspamd import RspamdConnection
from nbspam.server.spamd import SpamdConnection
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import keep_cutoffs, save_classifier
from protocols import OFFER, check, milter_mail, packet, post, tell
from scripted import PASSWORD, Client, desk, outcome_word, talk, until
from support import HAM, SPAM, examples, make_maildir

# ---- names ----

NAMES = st.text(max_size=40) | st.text("aA./\\%~ \0\né", max_size=12)


@given(NAMES)
def test_a_name_is_never_a_path(text):
    name = known_as(text)
    if name and "\ufffd" not in name and len(name) < 15:
        folder = user_folder_name(name)
        assert unquote(folder, errors="surrogatepass") == name  # so that no two share a folder
        assert os.path.basename(folder) == folder
        assert not folder.startswith(".")
        assert folder.isascii()
        assert folder.isprintable()
        assert len(folder) <= 200


@given(NAMES)
def test_a_name_is_known_whatever_its_case_and_form(text):
    name = known_as(text)

    assert known_as(name) == name
    assert known_as(f" <{unicodedata.normalize('NFD', text)}> ") == name
    assert known_as(text.upper() if text.isascii() else text) == name


def test_recipients_are_known_as_senders_may_spell_them():
    assert known_as("<Alice@Example.ORG>") == known_as("alice@example.org") == "alice@example.org"
    assert known_as("Zoe\u0308") == known_as("ZO\u00cb") == "zo\u00eb"
    assert known_as("groß") != known_as("gross")
    assert known_as(None) == known_as("  ") == known_as("<>") == ""
    assert len(known_as("\u0315\u0300" * 9999)) == 1000  # Unicode's order takes quadratic time


def test_hostile_names_become_folders_or_are_refused():
    for name, folder in (
        ("alice@example.org", "alice@example.org"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"), ("..", "%2E."),
        (".nbspam-0123456789abcdef", "%2Enbspam-0123456789abcdef"), ("a\0b", "a%00b"),
        ("%2e", "%252e"), ("zo\u00eb", "zo%C3%AB"), ("model.journal", "model.journal"),
    ):  # fmt: skip
        assert user_folder_name(name) == folder
    for text, why in (
        ("", "no user is named"), ("<>", "no user is named"), ("a" * 201, "201 bytes"),
        ("\u4e2d" * 23, "207 bytes"), ("a\ufffd", "not UTF-8"),
    ):  # fmt: skip
        with pytest.raises(judge.UserError, match=why):
            user_folder_name(known_as(text))


@given(st.lists(NAMES, max_size=5))
def test_whose_folders_there_are_is_read_from_their_names(texts):
    names = {known_as(text) for text in texts if "\ufffd" not in text and len(text) < 15} - {""}
    with TemporaryDirectory() as folder:
        for name in names:
            Path(folder, user_folder_name(name)).mkdir()
        assert judge.users_in(folder) == sorted(names)


def test_a_folder_that_no_user_has_is_nobodys(tmp_path):
    strange = (".Spam", "Alice", "%61lice", "a%2Fb%2f", "al%FFice", "a b", "%EF%BF%BD", "a" * 201)
    for entry in (*strange, "alice", b"caf\xe9"):
        os.mkdir(os.path.join(os.fsencode(tmp_path), os.fsencode(entry)))

    assert judge.users_in(str(tmp_path)) == ["alice"]
    assert judge.users_in(str(tmp_path / "alice" / "none")) == []


def test_the_folder_of_users_must_be_one_that_may_be_entered(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path, why in (
        (file, r"--users .*file: not a folder"),
        (file / "below", r"--users .*give another folder"),
        ("a\0b", r"null (byte|character)"),
    ):
        with pytest.raises(InputError, match=why):
            judge.check_folder(str(path))
    judge.check_folder(str(tmp_path / "new"))
    judge.check_folder(str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may enter any
    with pytest.raises(InputError, match="may not be entered; serve as its owner"):
        judge.check_folder(str(tmp_path))


PASSED = f"Password: {PASSWORD.decode()}"
BOTH = ("User: ann", "Deliver-To: <bob@b.example>")  # of which the second goes before the first


def test_a_header_says_it_to_spamd_and_over_http_and_the_only_recipient_to_a_milter():
    lesson = tell("spam", SPAM, "User: Bob", "Set: local")
    one, two = b"<Ann@B.example>", b"<bob@b.example>"
    mails = [milter_mail(to=to) for to in ([one], [one, two], [two], [one, one], [two, one, two])]
    odd = b'<"ann"@b.example>'  # the mail system says where it leads
    said = packet(b"R", odd + b"\0NOTIFY=NEVER\0")
    resolved = packet(b"D", b"R{rcpt_addr}\0ann@b.example.\0") + said
    mails += [milter_mail(to=[odd]).replace(said, resolved)]
    ann, bob = "Rcpt: <Ann@B.example>", "Rcpt: bob@b.example"
    named = [ann], [ann, ann.lower()], [ann, bob], [f"{ann}, bob@b.example"], ["Rcpt: "]
    named += ([bob, *["Rcpt: " + "a" * 999] * 200],)  # more than a head may have of other headers
    asked = [post("/checkv2", SPAM, *lines) for lines in (*named, [ann, *BOTH], [bob, BOTH[0]])]
    for kind, pieces, users in (
        (SpamdConnection, [check(SPAM, "CHECK", "1.5", "User: <Ann@B.example>")], "ann@b.example"),
        (SpamdConnection, [lesson], "bob"),
        (RspamdConnection, [post("/checkv2", SPAM, "User: Ann")], "ann"),
        (RspamdConnection, [post("/explain", SPAM, *BOTH)], "bob@b.example"),
        (RspamdConnection, [post("/learnham", SPAM, PASSED, *BOTH)], "bob@b.example"),
        (RspamdConnection, asked, "{ann},{ann},,,,,bob@b.example,ann"),
        (MilterConnection, [OFFER, *mails], "{ann},,bob@b.example,{ann},,{ann}"),
    ):
        at = talk(kind, *pieces, ends=True).desk
        assert at.judge.users + at.teacher.users == users.format(ann="ann@b.example").split(",")


# ---- models of their own ----

SETTINGS = chosen_settings(SettingsChoices(), is_text=False)
ASKED = news(50)


def spam_of(judgement):
    return judgement.verdict.posterior["spam"]


def labels(judgements):
    return [each.verdict.label for each in judgements]


class House:
    """A judge and a teacher of users, in threads of their own; use it in a running loop."""

    def __init__(self, site, folder, room, mailboxes):
        self.troubles = []
        self.users = UserCounts(str(folder), room, self.troubles.append)
        self.tally = ServerTally(2)
        model = StoredModel(str(site))
        self.judge = Judge(
            BatchJudge(model, lambda c: c.rule, self.troubles.append, self.tally, self.users)
        )
        sent = Mailboxes(mailboxes, str(site), str(folder)).newly_sent
        self.teacher = Teacher(TaughtModels(str(site), str(folder)), True, sent)

    async def teach(self, user, label, *messages):
        return [await self.teacher.teach(data, label, user) for data in messages]

    async def ask(self, *pairs, explain=False):
        """Return the judgements of pairs of user and message, which may be of one batch."""
        return await asyncio.gather(*(self.judge.judge(d, explain, user) for user, d in pairs))


@pytest.fixture
def living(site, tmp_path):
    """Return the context of a house in the folder of the test, or in another one."""

    @asynccontextmanager
    async def living_in(folder=tmp_path, room=1 << 20, mailboxes=None):
        house = House(site, folder, room, mailboxes)
        try:
            yield house
        finally:
            house.judge.end()
            house.teacher.end()

    return living_in


USERS = st.sampled_from(["ann", "bob", "eve"])
LESSONS = st.tuples(USERS, st.sampled_from(["ham", "spam", None]), st.integers(0, 5))


@settings(examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LESSONS, max_size=8))
def test_the_lessons_of_others_change_no_verdict(living, tmp_path_factory, lessons):
    asked = [(user, news(n)) for user in ("ann", "bob", "new") for n in (1, 99)]

    async def taught(*users):
        async with living(tmp_path_factory.mktemp("house")) as house:
            for user, label, n in lessons:
                if user in users:
                    await house.teach(user, label, news(n))
            return dict(zip(asked, await house.ask(*asked), strict=True))

    together = asyncio.run(taught("ann", "bob", "eve"))
    for user in ("ann", "bob", "new"):
        alone = asyncio.run(taught(user))
        for pair in asked:
            if pair[0] == user:
                # The last bits depend on how many messages are in a batch.
                assert spam_of(together[pair]) == pytest.approx(spam_of(alone[pair]), 1e-9)


async def test_words_of_one_user_are_in_no_explanation_of_another(living):
    secret = b"From: doctor@clinic.example\nSubject: xylographer\n\nyour quixotic diagnosis\n"
    async with living() as house:
        await house.teach("ann", "spam", secret)
        await house.teach("ann", "ham", HAM)
        asked = (("ann", secret), ("bob", secret), ("bob", news(1)))
        found = [each.explanation for each in await house.ask(*asked, explain=True)]

    ann, *others = ({each.token for each in why.evidence} for why in found)
    assert {"subject:xylographer", "quixotic"} <= ann
    for words in others:
        assert not any("xylograph" in word or "quixotic" in word for word in words)
    total = sum(each.contribution for each in found[0].evidence)
    assert total + found[0].constant == pytest.approx(found[0].score)


async def test_whoever_has_taught_nothing_has_no_files_and_others_write_in_their_folders(
    living, tmp_path
):
    async with living(tmp_path / "users") as house:
        await house.ask(("ann", SPAM), ("../bob", SPAM), ("a" * 999, SPAM))
        (outcome,) = await house.teach("ann", None, SPAM)
        assert outcome.unknown == 1
        assert not (tmp_path / "users").exists()
        for name in ("../out", "/etc/x", "a\0b", ".", "..", "con", "a" * 150):
            await house.teach(known_as(name), "spam", SPAM)

    assert [path.name for path in tmp_path.iterdir()] == ["users"]
    folders = sorted((tmp_path / "users").iterdir())
    assert len(folders) == 7
    for folder in folders:
        assert {path.name for path in folder.iterdir()} <= {"model", "model.lock", "model.journal"}


SENT = b"From: %s@x\nTo: bob@work.example\nMessage-ID: <%s@x>\n\nhello\n"


def maildir_of(user, boxes, *names):
    """Make a Maildir with sent mail; return the folder of sent mail."""
    sent = make_maildir(boxes / user, ".Sent") / ".Sent"
    for name in names:
        message = SENT % (user.encode(), name.encode())
        (sent / "cur" / name).write_bytes(gzip.compress(message))  # as Dovecot may keep it
    return sent


def mailboxes_in(folder):
    return Mailboxes(str(folder / "boxes"), str(folder / "m"), str(folder / "users"))


async def test_senders_are_known_from_the_users_own_sent_mail(living, tmp_path):
    sent = maildir_of("ann", tmp_path / "boxes", "one")
    maildir_of("bob", tmp_path / "boxes")
    answer = b"From: bob@work.example\nTo: ann@x\nIn-Reply-To: <%s@x>\n\nnews\n"
    first, second = answer % b"one", answer % b"two"
    known = {"people:reply-to-you", "people:known-correspondent"}

    async def facts(house, user, data):
        (found,) = await house.ask((user, data), explain=True)
        evidence = found.explanation.evidence
        return {each.token for each in evidence if each.token.startswith("people:")}

    async with living(tmp_path / "users", mailboxes=str(tmp_path / "boxes")) as house:
        await house.teach("ann", "ham", first)
        await house.teach("bob", "ham", first)
        assert await facts(house, "ann", first) == known
        assert await facts(house, "bob", first) == set()
        assert await facts(house, "ann", second) == set()  # a fact that was never met
        (sent / "new" / "two").write_bytes(SENT % (b"ann", b"two"))
        await house.teach("ann", "ham", HAM)
        assert await facts(house, "ann", second) == known
        asked = [(user, first) for user in ("ann", "bob", "", "ann")]
        ann, bob, nobody, again = await house.ask(*asked)
        assert spam_of(ann) == spam_of(again) != spam_of(nobody)
        assert spam_of(bob) != spam_of(ann)
        await house.teach("ann", None, first, HAM)
        assert await facts(house, "ann", second) == set()


def test_links_in_a_mailbox_lead_to_nobodys_sent_mail(tmp_path):
    (tmp_path / "users").mkdir()
    boxes = tmp_path / "boxes"
    theirs = maildir_of("ann", boxes, "one")
    for user, link in (("eve", ".Sent"), ("mal", ".Sent/cur"), ("dan", ".Sent/cur/one")):
        own = maildir_of(user, boxes).parent / link
        if own.is_dir():
            own.rename(tmp_path / f"away-{user}")
        own.symlink_to(theirs.parent / link)
    mailboxes = mailboxes_in(tmp_path)
    users = "ann", "eve", "mal", "dan", "nobody"
    found = [len(list(mailboxes.newly_sent(user, 0))) for user in users]
    assert found == [1, 0, 0, 0, 0]
    since = time.time() - 9, time.time() + 9  # and only mail that came since then is new
    assert [len(list(mailboxes.newly_sent("ann", each))) for each in since] == [1, 0]


async def test_sent_mail_is_read_until_it_is_learned(site, tmp_path, monkeypatch):
    asked, errors = [], [ModelFileError("no space")]

    def newly_sent(user, since):
        asked.append(since)
        return [Item("-", None, SENT % (b"ann", b"one"))]

    def learn(model, sent):
        if errors:
            raise errors.pop()

    monkeypatch.setattr(StoredModel, "learn_sent_mail", learn)
    teacher = Teacher(TaughtModels(str(site), str(tmp_path)), True, newly_sent)
    with pytest.raises(ModelFileError, match="no space"):
        await teacher.teach(SPAM, "spam", "ann")
    for _ in range(2):
        await teacher.teach(SPAM, "spam", "ann")
    teacher.end()
    assert [since > 0 for since in asked] == [False, False, True]


def test_sent_mail_that_is_moved_during_a_look_hides_no_other(tmp_path, monkeypatch):
    sent = maildir_of("ann", tmp_path / "boxes", "one", "two")

    def entries(*place):
        found = list(maildir_entries(*place))
        (sent / "cur" / "one").rename(sent / "cur" / "one:2,S")
        return found

    monkeypatch.setattr(mailbox, "SENT_FOLDERS", [".Sent"])
    monkeypatch.setattr(mailbox, "maildir_entries", entries)
    mailboxes = mailboxes_in(tmp_path)
    assert [item.name for item in mailboxes.newly_sent("ann", 0)] == [".Sent/cur/two"]


async def test_what_another_process_teaches_a_user_counts_from_the_next_message_on(living):
    async with living() as house:
        await house.teach("ann", "ham", HAM)
        assert labels(await house.ask(("ann", ASKED))) == ["ham"]
        lessons = [Item("-", "spam", news(n)) for n in range(30, 40)]
        path = judge.model_in(house.users.folder, "ann")
        StoredModel(path).learn(lessons, day=1, classes=["spam"])
        assert labels(await house.ask(("ann", ASKED))) == ["spam"]


async def test_cutoffs_in_a_users_model_are_the_rule_for_that_users_mail_only(living, tmp_path):
    asked = [(user, ASKED) for user in ("ann", "bob", "eve")]
    async with living() as house:
        for user in ("ann", "eve"):
            await house.teach(user, "spam", *(news(n) for n in range(30, 36)))
        before = await house.ask(*asked)
        strict = cutoffs(1e6, unsure_cost=1e-5)
        keep_cutoffs(str(tmp_path / "ann" / "model"), strict)
        found = await house.ask(*asked, explain=True)
        # A lesson keeps them, and so does a worker that reads the user's model the first time.
        await house.teach("ann", "spam", news(36))
    async with living() as house:
        (later,) = await house.ask(("ann", ASKED))
        await house.teach("ann", None, *(news(n) for n in range(30, 37)))
        alone, bob = await house.ask(("ann", ASKED), ("bob", ASKED))

    assert later.rule == alone.rule == strict  # also without any lesson
    assert spam_of(alone) == pytest.approx(spam_of(bob), 1e-9)
    assert labels(before) == ["spam", "ham", "spam"]
    assert labels(found) == ["unsure", "ham", "spam"]
    assert [each.explanation.verdict.label for each in found] == labels(found)
    assert [each.rule == strict for each in found] == [True, False, False]
    assert list(map(spam_of, found)) == pytest.approx(list(map(spam_of, before)), 1e-9)


async def test_a_link_between_folders_makes_two_names_one_user_whose_lessons_can_be_taken_back(
    living, tmp_path
):
    (tmp_path / "ann@example.org").mkdir()
    (tmp_path / "ann").symlink_to("ann@example.org")
    asked = [(name, ASKED) for name in ("ann", "ann@example.org")]
    lessons = [("ann@example.org" if n % 2 else "ann", news(n)) for n in range(30, 36)]
    async with living() as house:
        before = await house.ask(*asked)
        for label, outcome, shown in (
            ("spam", "learned", "spam"), ("spam", "already_known", "spam"),
            ("ham", "moved", "ham"), (None, "unlearned", "ham"), (None, "unknown", "ham"),
        ):  # fmt: skip
            for user, data in lessons:
                assert list(map(outcome_word, await house.teach(user, label, data))) == [outcome]
            found = await house.ask(*asked)
            assert labels(found) == [shown, shown]
    assert list(map(spam_of, found)) == list(map(spam_of, before))
    assert {path.name for path in tmp_path.iterdir()} == {"ann", "ann@example.org"}


async def test_memory_for_users_is_bounded_and_changes_no_verdict(living):
    async def verdicts(house):
        asked = [(f"user{k}", ASKED) for k in (0, 1, 2, 3, 4, 5, 0, 3)]
        return [spam_of((await house.ask(pair))[0]) for pair in asked]

    async with living() as house:
        for k in range(6):
            await house.teach(f"user{k}", "spam", news(k))
        ample, taken = await verdicts(house), house.users.n_bytes
        assert len(house.users) == 6
        assert house.tally.total("personal") == 8
    async with living(room=taken // 2) as house:
        assert await verdicts(house) == ample
        assert 1 <= len(house.users) <= 3
        assert house.users.n_bytes <= taken // 2


async def test_what_is_no_users_model_is_told_once_and_the_site_judges(living, tmp_path):
    texts = [Item("-", name, b"Subject: %s\n\nx\n" % name.encode()) for name in ("sea", "sky")]
    for name in ("ann", "eve"):
        (tmp_path / name).mkdir()
    (tmp_path / "ann" / "model").write_bytes(b"no model")
    save_classifier(str(tmp_path / "eve" / "model"), learn_items(texts, SETTINGS).classifier)
    (tmp_path / "dan").write_bytes(b"no folder")
    asked = [(user, ASKED) for user in ("ann", "bob", "dan", "eve")]
    async with living() as house:
        found = [*await house.ask(*asked), *await house.ask(*asked)]

    assert len({spam_of(each) for each in found}) == 1
    unread, nowhere, other = sorted(map(str, house.troubles))
    assert "ann/model" in unread
    assert "dan/model: cannot read the model: Not a directory" in nowhere
    assert "not a user's model" in other


# ---- lessons of nobody, and other models ----


async def test_a_lesson_of_nobody_is_refused(living, tmp_path, capfd):
    at = desk()
    async with living() as house:
        at.teacher = house.teacher
        spamd = await Client(SpamdConnection, at).send(tell("spam"))
        http = await Client(RspamdConnection, at).send(post("/learnspam", SPAM, PASSED))
        await until(lambda: spamd.answer and http.answer)

    assert spamd.answer.startswith(b"SPAMD/1.0 67 EX_NOUSER: no user is named")
    assert http.answer.startswith(b"HTTP/1.1 400 ")
    assert b"no user is named" in http.answer
    assert at.tally.total("trouble user") == 2
    assert capfd.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []
