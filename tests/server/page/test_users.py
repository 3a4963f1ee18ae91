"""Pages of users: whose mail each sees and teaches, and what attacks on each other get."""

import re
import shutil
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maildirs import key_of, put, written
from markup import Page
from nbspam.server.judge import user_folder_name
from nbspam.server.page.mailbox import Mailboxes
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from scripted import ACCESS, desk
from support import examples
from visitors import Visitor, furnished

HOSTILE = (
    "\"><script>document.title = 1</script>x", "' onclick='x", "\u202eeve", "a" * 200, "site", ".",
    "..", "../bob", "%2e", "jos\u00e9", "\u4e2d\u6587", "a;b=c", "a\r\nb", "token", "\0",
    "caf\udce9",
)  # fmt: skip


def subjects(visitor, path="/"):
    links = visitor.shown(path).within("a")
    return [found for found in links if found.startswith("number")]


def tokens(site):
    """Return the users for whom the site's page has links that log in."""
    return [ACCESS.user_of(each) for each in re.findall(r'/\?token=([^"]+)"', site.get("/").text)]


# ---- their own mail ----


def test_each_user_has_a_course_and_doubtful_mail_of_their_own(house, monkeypatch):
    begun, users = [], house.folder / "users"
    model = StoredModel(str(users / "ann" / "model"), new=PRESETS["mail"])
    model.learn([Item("-", "ham", written(1))], day=1, classes=["ham"])
    (users / "bob").mkdir()
    (users / "bob" / "model").write_bytes(b"no model")
    monkeypatch.setattr(
        "nbspam.server.page.doubtful.Doubting.begin",
        lambda _, mailbox: begun.append((mailbox.path, mailbox.model)),
    )
    for number in (1, 2):
        (house.folder / "boxes" / "ann" / "new" / key_of(number)).touch()  # it comes today
    house.ann.shown()

    text = house.ann.shown("/course").text
    assert "2 on mail of 30 days 1 spam" in text
    assert "Verdicts on messages that the model had learned before: 1." in text
    text = house.bob.shown("/course").text
    assert "There is nothing to show yet" in text
    for user in ("ann", "bob"):
        getattr(house, user).shown("/doubtful")
    assert begun == [
        (str(house.folder / "boxes" / user), str(users / user / "model"))
        for user in ("ann", "bob")
    ]
    (house.folder / "boxes" / "bob" / "new" / key_of(7)).touch()
    house.bob.shown()  # whose model cannot be read
    assert "had learned before" not in house.bob.shown("/course").text


def test_a_user_can_neither_see_nor_read_nor_teach_what_is_anothers(house):
    ann, bob = house.folder / "boxes" / "ann", house.folder / "boxes" / "bob"
    (ann / "cur" / "5.M1.host").symlink_to(bob / "new" / key_of(7))
    (ann / ".Spam").symlink_to(bob)
    there = f"bob/new/{key_of(7)}"
    for key in (key_of(7), f"../{there}", f"../../boxes/{there}", "../bob", "bob", "5.M1.host"):
        for label in ("spam", "ham"):
            assert house.ann.tell(**{label: key}).status_code == 404
        assert house.ann.get(f"/message?key={quote(key)}").status_code == 404
    for other in (house.bob, house.site):  # nor is another's form of use
        answer = house.ann.post("/tell", data={"form": other.form, "spam": key_of(1)})
        assert answer.status_code == 403
    answer = house.ann.get("/server")
    said = "The server's first line has the token that shows its counts."
    assert (answer.status_code, said in Page(answer.text).text) == (403, True)
    assert house.desk.teacher.users == house.desk.judge.users == []
    assert house.ann.forbidden() == 3

    assert subjects(house.ann) == ["number 2", "number 1"]
    page = house.ann.shown()
    assert "Mail of ann" in page.text
    assert ("a", {"href": "/server"}) not in page.attributes
    assert house.desk.judge.users == ["ann"] * len(house.desk.judge.users)
    texts = answer.text, house.ann.get("/").text
    assert not any(re.search(r"\b(bob|eve)\b", text) for text in texts)
    assert "bobs own" in house.bob.get(f"/message?key={key_of(7)}").text
    assert house.bob.tell(spam=key_of(7)).status_code == 303
    assert house.ann.tell(undo="1").status_code == 404
    assert house.bob.tell(undo="1").status_code == 303
    assert house.desk.teacher.users == ["bob", "bob"]


# ---- the site ----


def test_the_site_sees_users_with_links_that_log_in_and_can_neither_read_nor_teach(house):
    page = house.site.shown()
    assert page.within("h1") == ["Users"]
    assert "number" not in page.text
    rows = re.findall("<tr>.*?</tr>", house.site.get("/").text, re.DOTALL)[1:]
    assert [[word for _, word in Page(row).texts] for row in rows] == [
        ["ann", "yes", "none"], ["bob", "yes", "none"], ["eve", "none", "yes"],
    ]  # fmt: skip
    assert tokens(house.site) == ["ann", "bob", "eve"]
    assert house.site.shown("/server").within("h1") == ["What the server has done"]

    paths = (f"message?key={key_of(1)}", f"message?key=ann/new/{key_of(1)}", "course", "doubtful",
             "anything")  # fmt: skip
    answers = [house.site.get(f"/{path}") for path in paths]
    answers += [house.site.tell(spam=key_of(1)), house.site.tell(undo="1")]
    for answer in answers:
        assert answer.status_code == 403
        assert "Mail is for its user only. Log in as one." in Page(answer.text).text
    assert house.desk.teacher.users == house.desk.judge.users == []
    assert house.site.forbidden() == len(answers)


def test_a_site_without_users_says_so(tmp_path):
    at = desk(mailboxes=Mailboxes(None, "", str(tmp_path / "users")))
    assert "Nobody has a mailbox in the folder of" in Visitor(at).shown().text
    at.reviewer.end()


# ---- who has no mail, and who is there no more ----


def test_a_user_without_a_mailbox_is_told_so(house):
    for answer, status in (
        (house.eve.get("/"), 200),
        (house.eve.get(f"/message?key={key_of(1)}"), 404),
        (house.eve.tell(spam=key_of(1)), 404),
    ):
        assert answer.status_code == status
        assert "The server has no mailbox of your name" in Page(answer.text).text
    assert house.desk.teacher.users == []
    assert [path.name for path in (house.folder / "users" / "eve").iterdir()] == ["model"]


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "seen"])
def test_token_and_session_of_a_removed_user_are_refused(house, looks):
    paths = ("/", f"/message?key={key_of(7)}", "/course", "/doubtful")
    assert not looks or {house.bob.get(path).status_code for path in paths} == {200}
    shutil.rmtree(house.folder / "boxes" / "bob")
    answers = [house.bob.get(path) for path in paths]
    answers += [house.bob.tell(spam=key_of(7)), house.bob.tell(undo="1")]

    for answer in answers:
        assert answer.status_code == 403
        assert "neither a mailbox nor a model here any more" in Page(answer.text).text
    assert house.bob.get("/", params={"token": ACCESS.token_of("bob")}).status_code == 303
    assert house.bob.get("/").status_code == 403
    assert house.bob.forbidden() == 7
    assert (house.folder / "users" / "bob").exists() == looks  # who is refused leaves nothing
    assert house.desk.teacher.users == []


def test_users_of_hostile_names_are_text_and_see_and_teach_their_own_mail(house):
    folders = {user_folder_name(name): 10 + number for number, name in enumerate(HOSTILE)}
    for folder, number in folders.items():
        put(house.folder / "boxes" / folder, number)
    text = house.site.get("/").text

    assert "<script" not in text
    assert "\u202e" not in text
    assert not any("onclick" in attributes for _, attributes in Page(text).attributes)
    assert {*tokens(house.site)} == {*HOSTILE, "ann", "bob", "eve"}
    for number, name in enumerate(HOSTILE, 10):
        visitor = Visitor(house.desk, name)
        text = visitor.get("/").text
        assert subjects(visitor) == [f"number {number}"]
        assert text.count("<script") == 1  # that of the keys
        assert "\u202e" not in text
        assert visitor.tell(spam=key_of(number)).status_code == 303
    assert house.desk.teacher.users == [*HOSTILE]
    assert {path.name for path in house.folder.iterdir()} == {"boxes", "users"}
    assert {path.name for path in (house.folder / "users").iterdir()} == {"eve", *folders}


WORDS = st.sampled_from([
    key_of(1), key_of(2), key_of(7), f"../bob/new/{key_of(7)}", "bob", "ann", "1", "2", "spam",
    "form of bob", "form of site", ACCESS.token_of("ann"), "words=number",
]) | st.text(max_size=10)  # fmt: skip
NAMES = st.sampled_from([
    "key", "spam", "ham", "undo", "form", "back", "next", "page", "user", "words", "start",
    "verdict", "order", "doubtful", "name", "from",
])  # fmt: skip
PATHS = st.sampled_from(["/", "/message", "/tell", "/course", "/server", "/bob", "/../bob"])
REQUESTS = st.tuples(PATHS, st.dictionaries(NAMES, WORDS, max_size=4), st.sampled_from("GFP"))


@examples(40)
@given(st.lists(REQUESTS, min_size=1, max_size=5))
def test_whatever_a_user_asks_for_concerns_nobody_else(tmp_path_factory, wanted):
    with furnished(tmp_path_factory.mktemp("house")) as house:
        forms = {"form of bob": house.bob.form, "form of site": house.site.form}
        answers = []
        for path, fields, kind in wanted:
            fields = {name: forms.get(word, word) for name, word in fields.items()}
            form = {"form": house.ann.form} if kind == "F" else {}
            query = f"?{urlencode(fields, errors='replace')}" if kind == "G" else ""
            method = "GET" if kind == "G" else "POST"
            answers.append(house.ann.request(method, path + query, data={**fields, **form}))

    assert {each.status_code for each in answers} <= {200, 303, 400, 403, 404, 405}
    assert {*house.desk.judge.users, *house.desk.teacher.users} <= {"ann"}
    assert not any("bobs own" in each.text or "number 7" in each.text for each in answers)
    assert {path.name for path in (house.folder / "users").iterdir()} <= {"ann", "eve"}
    bobs = (house.folder / "boxes" / "bob" / "new").iterdir()
    assert [path.name for path in bobs] == [key_of(7)]
