"""Whatever a user asks for, it is their own mail that is shown and their own model that learns."""

from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st

from mailboxes import key_of
from people_requests import FORMS, SESSIONS, asked, furnished, talk
from scripted import ACCESS
from support import examples

WORDS = st.sampled_from([
    key_of(1), key_of(2), key_of(7), f"../bob/new/{key_of(7)}", "bob", "ann", "1", "2", "spam",
    FORMS["ann"], FORMS["bob"], FORMS[""], SESSIONS["bob"], ACCESS.token_of("ann"), "words=number",
]) | st.text(max_size=10)  # fmt: skip
NAMES = st.sampled_from([
    "key", "spam", "ham", "undo", "form", "back", "next", "page", "user", "words", "start",
    "verdict", "order", "doubtful",
])  # fmt: skip
PATHS = st.sampled_from(["/", "/message", "/tell", "/course", "/server", "/bob", "/../bob"])
FIELDS = st.dictionaries(NAMES, WORDS, max_size=4)


@st.composite
def requests(draw):
    """Return a request with ann's session, and mostly with a form of hers."""
    path, fields = draw(PATHS), draw(FIELDS)
    if draw(st.booleans()):
        return asked("ann", "GET", f"{path}?{urlencode(fields, errors='replace')}")
    form = draw(st.sampled_from([{"form": FORMS["ann"]}, {}]))
    fields = {name: word.encode("utf-8", "replace") for name, word in fields.items()}
    return asked("ann", "POST", path, {**fields, **form})


@examples(40)
@given(st.lists(requests(), min_size=1, max_size=5))
def test_whatever_a_user_asks_for_concerns_nobody_else(tmp_path_factory, wanted):
    house = furnished(tmp_path_factory.mktemp("house"))
    at, answers = talk(house, *wanted)

    assert {status for status, _, _ in answers} <= {200, 303, 400, 403, 404}
    assert {*at.judge.users, *at.teacher.users} <= {"ann"}
    assert not any("bobs own" in text or "number 7" in text for _, _, text in answers)
    assert {path.name for path in (house / "users").iterdir()} <= {"ann", "eve"}
    assert [path.name for path in (house / "boxes" / "bob" / "new").iterdir()] == [key_of(7)]
