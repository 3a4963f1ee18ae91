"""Pages of users without a network: whose mail each sees and teaches, and what attacks get."""

import asyncio
import re
import shutil
from functools import partial
from time import time
from urllib.parse import quote

import pytest

from http_requests import parsed
from mailboxes import key_of, put, written
from markup import Page
from nbspam.server.page.app import WebConnection
from nbspam.server.users import user_folder_name
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from people_requests import FORMS, SITE, asked, furnished, talk, tell
from scripted import ACCESS, Client, desk

HOSTILE = (
    "\"><script>document.title = 1</script>x", "' onclick='x", "\u202eeve", "a" * 200, "site", ".",
    "..", "../bob", "%2e", "jos\u00e9", "\u4e2d\u6587", "a;b=c", "a\r\nb", "token", "\0",
)  # fmt: skip


@pytest.fixture
def house(tmp_path):
    return furnished(tmp_path)


def subjects(text):
    return [found for found in Page(text).within("a") if found.startswith("number")]


# ---- their own mail ----


def test_each_user_sees_the_mail_of_their_own_by_their_own_model(house):
    at, answers = talk(house, *[asked(user, "GET", "/") for user in ("ann", "bob", "ann")])

    assert [status for status, _, _ in answers] == [200, 200, 200]
    assert [subjects(text) for _, _, text in answers] == [
        ["number 2", "number 1"], ["number 7"], ["number 2", "number 1"],
    ]  # fmt: skip
    judged = zip(at.judge.users, at.judge.seen, strict=True)
    assert [user for user, data in judged if data != b"\n"] == ["ann", "ann", "bob"]
    assert set(at.judge.users) == {"ann", "bob"}
    for user, (_, _, text) in zip(("ann", "bob"), answers, strict=False):
        assert f"Mail of {user}" in Page(text).text
        assert "/server" not in text


def test_each_user_sees_how_their_own_model_is_doing_and_their_own_doubtful_mail(
    house, monkeypatch
):
    begun = []
    monkeypatch.setattr(
        "nbspam.server.page.doubtful.Doubting.begin",
        lambda _, mailbox, database: begun.append((mailbox, database.model)),
    )
    (house / "boxes" / "ann" / "new" / key_of(2)).touch()  # it comes today
    _, answers = talk(
        house,
        asked("ann", "GET", "/"),
        *[asked(user, "GET", "/course") for user in ("ann", "bob")],
        *[asked(user, "GET", "/doubtful") for user in ("ann", "bob")],
    )

    ann, bob = (Page(text).text for _, _, text in answers[1:3])
    assert "1 on mail of 30 days 1 spam" in ann
    assert "There is nothing to show yet" in bob
    assert all("/server" not in text for _, _, text in answers)
    assert begun == [
        (str(house / "boxes" / user), str(house / "users" / user / "model"))
        for user in ("ann", "bob")
    ]


def test_mail_that_a_users_own_model_had_learned_is_counted_apart(house):
    model = StoredModel(str(house / "users" / "ann" / "model"), new=PRESETS["mail"])
    model.learn([Item("-", "ham", written(1))], day=1, classes=["ham"])
    (house / "users" / "bob").mkdir()
    (house / "users" / "bob" / "model").write_bytes(b"no model")
    for path in (house / "boxes").glob("*/new/*"):
        path.touch()  # it comes today
    _, answers = talk(
        house,
        *[asked(user, "GET", path) for user in ("ann", "bob") for path in ("/", "/course")],
    )

    known = "Verdicts on messages that the model had learned before: "
    assert f"{known}1." in Page(answers[1][2]).text
    assert [status for status, _, _ in answers] == [200] * 4
    assert known not in Page(answers[3][2]).text


def test_what_a_user_says_teaches_and_notes_nothing_of_others(house):
    at, answers = talk(
        house,
        asked("ann", "GET", "/"),
        asked("bob", "GET", "/"),
        tell("ann", spam=key_of(1)),
        asked("bob", "GET", "/"),
        asked("ann", "GET", "/"),
        tell("ann", undo="1"),
    )

    assert (answers[2][0], answers[5][0]) == (303, 303)
    assert at.teacher.users == ["ann", "ann"]
    assert "you said" not in answers[3][2]
    assert Page(answers[4][2]).text.count("you said spam") == 1
    notes = {path.parent.name for path in (house / "users").glob("*/model.review")}
    assert notes == {"ann", "bob"}
    assert not list(house.glob("*.review"))


def test_a_connection_belongs_to_whoever_each_request_says(house):
    # A proxy, or ssh -L, may send what several browsers ask over one connection.
    at, answers = talk(house, tell("bob", ham=key_of(7)), tell("ann", ham=key_of(1)))

    assert [status for status, _, _ in answers] == [303, 303]
    assert at.teacher.users == ["bob", "ann"]


def test_one_message_is_shown_to_its_user_only(house):
    path = f"/message?key={key_of(7)}"
    at, answers = talk(house, *[asked(user, "GET", path) for user in ("bob", "ann", SITE)])

    assert [status for status, _, _ in answers] == [200, 404, 403]
    assert "bobs own" in answers[0][2]
    assert at.judge.users == ["bob"]
    assert at.tally.total("trouble forbidden") == 1


# ---- attacks of one user on another ----


def test_a_message_of_another_can_neither_be_taught_nor_read(house):
    for key in (
        key_of(7),
        f"../bob/new/{key_of(7)}",
        f"../../boxes/bob/new/{key_of(7)}",
        "../bob",
        "bob",
    ):
        for label in ("spam", "ham"):
            at, answers = talk(
                house,
                tell("ann", **{label: key}),
                asked("ann", "GET", f"/message?key={quote(key)}"),
            )

            assert [status for status, _, _ in answers] == [404, 404]
            assert at.teacher.users == []
            assert at.judge.users == []


def test_links_in_a_mailbox_lead_to_nobodys_mail(house):
    ann, bob = house / "boxes" / "ann", house / "boxes" / "bob"
    (ann / "cur" / "5.M1.host").symlink_to(bob / "new" / key_of(7))
    (ann / ".Spam").symlink_to(bob)
    at, answers = talk(
        house,
        asked("ann", "GET", "/"),
        asked("ann", "GET", "/message?key=5.M1.host"),
        tell("ann", spam=key_of(7)),
    )

    assert [status for status, _, _ in answers] == [200, 404, 404]
    assert subjects(answers[0][2]) == ["number 2", "number 1"]
    assert at.teacher.users == []


def test_a_lesson_of_another_cannot_be_undone(house):
    at, answers = talk(house, tell("bob", spam=key_of(7)), tell("ann", undo="1"))

    assert [status for status, _, _ in answers] == [303, 404]
    assert at.teacher.users == ["bob"]


def test_a_form_of_another_is_refused(house):
    for other in ("bob", SITE):
        form = {"form": FORMS[other], "spam": key_of(1)}
        at, [(status, _, text)] = talk(house, asked("ann", "POST", "/tell", form))

        assert (status, text) == (403, "not a form of this session; open / again\n")
        assert at.teacher.users == []
        assert at.tally.total("trouble forbidden") == 1


def test_no_field_says_whose_mail_it_is(house):
    for where in ("user", "nbspam-user", "name", "from"):
        lesson = tell("ann", spam=key_of(7), **{where: "bob"})
        page = asked("ann", "GET", f"/?{where}=bob&user=bob")
        at, [told, listed] = talk(house, lesson, page)

        assert told[0] == 404
        assert subjects(listed[2]) == ["number 2", "number 1"]
        assert at.teacher.users == []


def test_a_user_sees_neither_the_counts_of_the_server_nor_other_users(house):
    at, answers = talk(house, asked("ann", "GET", "/server"), asked("ann", "GET", "/"))

    assert answers[0][0] == 403
    assert answers[0][2] == "what the server does is for the token in its first line\n"
    assert at.tally.total("trouble forbidden") == 1
    assert not any(re.search(r"\b(bob|eve)\b", text) for _, _, text in answers)


# ---- the site ----


def test_the_site_sees_users_with_links_that_log_in_and_nobodys_mail(house):
    _, [(status, _, text), (server, _, counts)] = talk(
        house, asked(SITE, "GET", "/"), asked(SITE, "GET", "/server")
    )

    assert (status, server) == (200, 200)
    assert Page(counts).within("h1") == ["What the server has done"]
    assert Page(text).within("h1") == ["Users"]
    assert "number" not in Page(text).text
    rows = [Page(row).texts for row in re.findall("<tr>.*?</tr>", text, re.DOTALL)[1:]]
    assert [[word for _, word in row] for row in rows] == [
        ["ann", "yes", "none"], ["bob", "yes", "none"], ["eve", "none", "yes"],
    ]  # fmt: skip
    tokens = re.findall(r'href="/\?token=([^"]+)"', text)
    assert [ACCESS.user_of(token) for token in tokens] == ["ann", "bob", "eve"]


def test_the_site_can_neither_read_nor_teach(house):
    for request_bytes in (
        asked(SITE, "GET", f"/message?key={key_of(1)}"),
        asked(SITE, "GET", f"/message?key=ann/new/{key_of(1)}"),
        asked(SITE, "GET", "/course"),
        asked(SITE, "GET", "/doubtful"),
        asked(SITE, "GET", "/anything"),
        tell(SITE, spam=key_of(1)),
        tell(SITE, undo="1"),
    ):
        at, [(status, _, text)] = talk(house, request_bytes)

        assert (status, text) == (403, "mail is for its user only; log in as one\n")
        assert (at.teacher.users, at.judge.users) == ([], [])
        assert at.tally.total("trouble forbidden") == 1


def test_a_site_without_users_says_so(tmp_path):
    _, [(status, _, text)] = talk(tmp_path, asked(SITE, "GET", "/"), review=None)

    assert status == 200
    assert "Nobody has a mailbox in the folder of" in Page(text).text


# ---- who has no mail, and who is there no more ----


def test_a_user_without_a_mailbox_is_told_so(house):
    session = ACCESS.new_session(time(), "eve")
    form = {"form": ACCESS.form_token(session), "spam": key_of(1)}
    at, answers = talk(
        house,
        asked("eve", "GET", "/", session=session),
        asked("eve", "GET", f"/message?key={key_of(1)}", session=session),
        asked("eve", "POST", "/tell", form, session=session),
    )

    assert [status for status, _, _ in answers] == [200, 404, 404]
    for _, _, text in answers:
        assert "The server has no mailbox of your name" in Page(text).text
    assert at.teacher.users == []
    assert [path.name for path in (house / "users" / "eve").iterdir()] == ["model"]


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen"])
def test_token_and_session_of_a_removed_user_are_refused(house, looks):
    paths = ("/", f"/message?key={key_of(7)}", "/course", "/doubtful")
    at, answers = talk(
        house,
        *[asked("bob", "GET", path) for path in paths if looks],
        partial(shutil.rmtree, house / "boxes" / "bob"),
        asked("ann", "GET", f"/?token={ACCESS.token_of('bob')}", session="x"),
        *[asked("bob", "GET", path) for path in paths],
        tell("bob", spam=key_of(7)),
        tell("bob", undo="1"),
    )

    assert [status for status, _, _ in answers] == [200] * 4 * looks + [303] + [403] * 6
    for _, _, text in answers[-6:]:
        assert "neither a mailbox nor a model here any more" in Page(text).text
    assert at.tally.total("trouble forbidden") == 6
    assert (house / "users" / "bob").exists() == looks  # who is refused leaves nothing behind
    assert at.teacher.users == []


def test_without_users_their_tokens_and_sessions_are_not_ours():
    async def converse():
        at = desk()
        client = Client(WebConnection, at)
        await client.send(asked("ann", "GET", "/"), tell("ann", spam="1"))
        await client.send(asked("", "GET", f"/?token={ACCESS.token_of('ann')}"))
        return at, [status for status, _, _ in parsed(client.answer)]

    at, found = asyncio.run(converse())
    assert found == [403, 403, 403]
    assert at.tally.total("trouble forbidden") == 2


# ---- names of any kind ----


def test_users_of_hostile_names_have_pages_and_their_names_are_text(house):
    for number, name in enumerate(HOSTILE):
        put(house / "boxes" / user_folder_name(name), 10 + number)
    _, [(status, _, text)] = talk(house, asked(SITE, "GET", "/"))

    assert status == 200
    assert "<script" not in text
    assert "\u202e" not in text
    assert not any("onclick" in attributes for _, attributes in Page(text).attributes)
    tokens = re.findall(r'href="/\?token=([^"]+)"', text)
    assert {ACCESS.user_of(token) for token in tokens} == {*HOSTILE, "ann", "bob", "eve"}


def test_who_has_a_hostile_name_sees_and_teaches_their_own_mail(house):
    for number, name in enumerate(HOSTILE):
        put(house / "boxes" / user_folder_name(name), 10 + number)
        session = ACCESS.new_session(time(), name)
        form = {"form": ACCESS.form_token(session), "spam": key_of(10 + number)}
        at, [page, told] = talk(
            house,
            asked(name, "GET", "/", session=session),
            asked(name, "POST", "/tell", form, session=session),
        )

        assert (page[0], told[0]) == (200, 303)
        assert subjects(page[2]) == [f"number {10 + number}"]
        assert page[2].count("<script") == 1  # that of the keys
        assert "\u202e" not in page[2]
        assert at.teacher.users == [name]
    assert {path.name for path in house.iterdir()} == {"boxes", "users"}
    folders = {"eve", *map(user_folder_name, HOSTILE)}
    assert {path.name for path in (house / "users").iterdir()} == folders
