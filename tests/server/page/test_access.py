"""Who may see the page: the secret, tokens, logging in and out; see also test_attacks."""

import os
import re
import socket
from base64 import b64encode
from html import unescape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import TimestampSigner

from markup import Page
from nbspam.disk import locked
from nbspam.errors import ModelFileError, UsageError
from nbspam.server.choices import Access, Address, access_beside, hosts_of, page_of
from nbspam.server.judge import known_as
from nbspam.server.page.pages import guards
from nbspam.server.page.routes import SESSION_SECONDS, page_app
from scripted import ACCESS, desk
from visitors import COOKIE, Visitor

TOKEN, OTHER = ACCESS.token_of(""), Access("2" * 64)
LINE = "text/plain; charset=utf-8"


@pytest.fixture
def bare():
    """A visitor of a page without mail, who is logged in."""
    return Visitor(desk())


# ---- tokens ----

NAMES = st.text(max_size=30) | st.text("a.\0 _-", max_size=6)
MORE = st.text(max_size=60) | st.text("aA._-=", max_size=60)


@given(NAMES, NAMES, st.integers(0, 99))
def test_a_token_logs_in_the_user_whom_it_names_and_nobody_else(name, other, cut):
    user, victim = known_as(name), known_as(other)
    token = ACCESS.token_of(user)
    data, _, mac = token.rpartition(".")
    named = ACCESS.token_of(victim).rpartition(".")[0]

    assert ACCESS.user_of(token) == user
    assert OTHER.user_of(token) is None
    assert (ACCESS.token_of(victim) == token) == (victim == user)
    assert quote(token, safe="") == token  # so it can be in an address as it is
    for made in (f"{named}.{mac}", named + token, f"{named}.{token}", data, mac):
        assert ACCESS.user_of(made) == (user if made == token else None)
    assert ACCESS.user_of(token[:cut] + token[cut + 1 :]) in {None, user}


@given(MORE, MORE)
def test_a_malformed_token_is_nobodys_and_never_an_error(text, more):
    for wrong in (text, f"{text}.{more}", f"{text}.{ACCESS.token_of('ann')}"):
        assert ACCESS.user_of(wrong) is None
    assert ACCESS.user_of(ACCESS.token_of("caf\udce9")) == "caf\udce9"  # a name is no UTF-8


# ---- the secret ----


def site_token(model):
    return access_beside(str(model)).token_of("")


def test_the_secret_is_made_once_for_the_model_and_only_its_owner_can_read_it(own_model, tmp_path):
    os.chmod(own_model, 0o644)
    first = site_token(own_model)
    assert os.stat(f"{own_model}.secret").st_mode & 0o777 == 0o600
    with locked(str(own_model)):  # a server starts while another process learns
        assert site_token(own_model) == first

    (tmp_path / "link").symlink_to(own_model)
    assert site_token(tmp_path / "link") == first
    assert not (tmp_path / "link.secret").exists()
    os.unlink(f"{own_model}.secret")
    assert site_token(own_model) != first


def written(text, mode=0o600):
    def spoil(path):
        path.write_text(text)
        path.chmod(mode)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (written("0" * 64, 0o640), "m.secret: others than its owner can read it; remove it"),
        (written("open sesame\n"), "m.secret: not a secret; remove it, and a new one is made"),
        (written("00\n"), "m.secret: not a secret; remove it, and a new one is made"),
        (lambda path: path.symlink_to("/dev/zero"), "a symbolic link, and none is followed here"),
        (lambda path: path.mkdir(), "m.secret: a folder; remove it"),
        (lambda path: path.parent.rmdir() or path.parent.write_text(""), "Not a directory"),
    ],
)
def test_a_secret_that_others_know_or_made_or_that_cannot_be_kept_is_refused(tmp_path, spoil, why):
    (tmp_path / "folder").mkdir()
    spoil(tmp_path / "folder" / "m.secret")

    with pytest.raises(ModelFileError, match=why):
        access_beside(str(tmp_path / "folder" / "m"))


def test_the_address_of_the_page_has_the_token_and_is_for_this_machine_only(tmp_path):
    model = str(tmp_path / "m")
    with (
        socket.create_server(("0.0.0.0", 0)) as listener,
        pytest.raises(UsageError, match="other machines can reach it, and it is not encrypted"),
    ):
        page_of(listener, model)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(UsageError, match="no browser opens it; give 127"):
            page_of(listener, model)
    assert not (tmp_path / "m.secret").exists()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert page_of(listener, model) == f"http://127.0.0.1:{port}/?token={site_token(model)}"


# ---- logging in and out ----


def test_the_token_logs_in_and_the_session_shows_the_page():
    for log_in in (
        lambda it: it.get(f"/?token={TOKEN}"),
        lambda it: it.post("/login", data={"token": f" {TOKEN}\n"}),
    ):
        visitor = Visitor(desk(), None)
        answer = log_in(visitor)
        cookie, *rights = answer.headers["set-cookie"].split("; ")

        assert (answer.status_code, answer.headers["location"], answer.text) == (303, "/", "")
        age = f"Max-Age={SESSION_SECONDS}"
        assert sorted(rights) == sorted(["path=/", "httponly", "samesite=strict", age])
        assert TOKEN not in cookie
        assert visitor.shown().within("h1") == ["What the server has done"]


def test_without_a_session_every_page_asks_for_the_token_and_leads_to_the_wanted_one():
    nobody = Visitor(desk(), None)
    for path in ("/", "/?", "/?tokens=x", "/anything", "/logout", "/message?key=1"):
        answer = nobody.get(path)
        page = Page(answer.text)

        assert answer.status_code == 403
        assert page.within("label") == ["Token"]
        assert ("form", {"method": "post", "action": "/login"}) in page.attributes
        assert "alert" not in answer.text

    wanted = "/message?key=1.M1.host&words=a+b%26c"
    answer = nobody.get(wanted)
    for token in ("guess", TOKEN):
        (hidden,) = re.findall('name="next" value="([^"]*)"', answer.text)
        answer = nobody.post("/login", data={"next": unescape(hidden), "token": token})
    assert (answer.status_code, answer.headers["location"]) == (303, wanted)


def test_another_login_begins_another_session_and_logging_out_ends_it(bare):
    before = bare.session, bare.form
    bare.post("/login", data={"token": TOKEN})
    assert bare.session != before[0]
    assert bare.form != before[1]

    answer = bare.post("/logout", data={"form": bare.form})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert bare.session is None
    assert bare.get("/").status_code == 403


def test_a_session_of_nobody_or_after_a_month_is_none(bare, monkeypatch):
    ours = bare.session
    for data in (b"{}", b'{"user": "ann", "form": "x"}'):  # who has no page here
        signed = TimestampSigner(ACCESS.secret).sign(b64encode(data)).decode()
        bare.cookies.set(COOKIE, signed, "127.0.0.1")
        assert bare.get("/").status_code == 403
        answer = bare.post("/logout", data={"form": "x"})
        assert "You are not logged in any more, so nothing was done." in Page(answer.text).text
    assert bare.forbidden() == 2
    assert Visitor(bare.desk, "ann").session is None  # nor has a token of ann's one

    bare.cookies.set(COOKIE, ours, "127.0.0.1")
    now = TimestampSigner("x").get_timestamp()
    for later, status in ((SESSION_SECONDS - 60, 200), (SESSION_SECONDS + 60, 403)):
        monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _, t=now + later: t)
        assert bare.get("/").status_code == status


# ---- other sites; see also test_attacks ----


def test_hosts_are_spelt_as_browsers_spell_them():
    assert hosts_of(Address("127.0.0.1", 8025)) == {"127.0.0.1:8025", "localhost:8025"}
    assert hosts_of(Address("::1", 8025)) == {"[::1]:8025", "localhost:8025"}
    assert {"127.0.0.1", "localhost"} <= hosts_of(Address("127.0.0.1", 80))


def test_an_answer_forbids_the_browser_all_but_the_page(bare):
    headers = guards()  # test_attacks finds them in every answer
    policy = headers["Content-Security-Policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert re.fullmatch("style-src 'sha256-[^']+'", policy[1])
    assert re.fullmatch("script-src 'sha256-[^']+'", policy[2])
    assert policy[3:] == ["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert bare.get("/").headers["content-type"] == "text/html; charset=utf-8"
    answer = bare.put("/")
    assert (answer.status_code, answer.headers["content-type"]) == (405, LINE)


# ---- the server's own pages ----


def test_an_unknown_address_leads_back(bare):
    for method, path, status, words in (
        ("GET", "/<script>", 404, "There is no such page."),
        ("GET", "/message?key=1", 404, "There is no such page."),
        ("GET", "/login", 405, "This address only takes forms of the page."),
        ("POST", "/none", 404, "There is no such page."),
        ("POST", "/tell", 404, "There is no such page."),  # of a page without mail
    ):
        answer = bare.request(method, path, data={"form": bare.form})
        page = Page(answer.text)

        assert answer.status_code == status
        assert words in page.text
        assert ("a", {"href": "/"}) in page.attributes


def test_the_page_shows_what_the_server_has_done(bare, monkeypatch):
    assert "Every request got an answer." in bare.shown().text
    at = bare.desk
    monkeypatch.setattr("nbspam.server.page.routes.time", lambda: at.judge.model_time + 7200)
    for _ in range(1500):
        at.tally.note("spam", 0.25)
    at.tally.add("lesson moved", 7)
    at.tally.add("trouble busy", 3)
    text = bare.shown().text

    for words in (
        "spam 1,500 ", "ham 0 ", "moved to the other class 7 ", "too many at the same time 3 ",
        "An answer takes 250.0 ms on average", "The model was written 2 hours ago.",
        "--review MAILBOX",
    ):  # fmt: skip
        assert words in text
    assert "forbidden" not in text  # what has not happened needs no line


def test_the_reference_lists_the_address_of_every_route(pytestconfig):
    reference = (pytestconfig.rootpath / "docs/reference/serving.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(?:GET|POST) (/\w*)", reference, re.MULTILINE))
    assert {route.path for route in page_app(desk(), 8025).routes} <= documented
