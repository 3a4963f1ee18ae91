"""Who may see the page: logging in and out, and what other sites and guessers are answered."""

import re
from base64 import b64encode
from html import unescape

import pytest
from itsdangerous import TimestampSigner

from mailboxes import key_of, put
from markup import Page
from nbspam.server.page.access import Access
from nbspam.server.page.routes import SESSION_SECONDS
from scripted import ACCESS, desk
from visitors import COOKIE, HOST, Visitor

TOKEN, OTHER = ACCESS.token_of(""), Access("2" * 64)
LINE = "text/plain; charset=utf-8"


@pytest.fixture
def bare():
    """A visitor of a page without mail, who is logged in."""
    return Visitor(desk())


@pytest.fixture
def nobody():
    """A visitor of that page who is not."""
    return Visitor(desk(), None)


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
        assert sorted(rights) == sorted(
            ["path=/", "httponly", "samesite=strict", f"Max-Age={SESSION_SECONDS}"]
        )
        assert TOKEN not in cookie
        assert visitor.shown().within("h1") == ["What the server has done"]


def test_without_a_session_every_page_asks_for_the_token(nobody):
    for path in ("/", "/?", "/?tokens=x", "/anything", "/logout", "/message?key=1"):
        answer = nobody.get(path)
        page = Page(answer.text)

        assert answer.status_code == 403
        assert page.within("label") == ["Token"]
        assert ("form", {"method": "post", "action": "/login"}) in page.attributes
        assert "alert" not in answer.text


def test_a_browser_without_a_session_comes_back_to_where_it_wanted_to_go(nobody):
    wanted = "/message?key=1.M1.host&words=a+b%26c"
    answer = nobody.get(wanted)
    for token in ("guess", TOKEN):
        (hidden,) = re.findall('name="next" value="([^"]*)"', answer.text)
        answer = nobody.post("/login", data={"next": unescape(hidden), "token": token})

    assert (answer.status_code, answer.headers["location"]) == (303, wanted)


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example/", "/\\evil.example/", "/\t/evil.example/", "http://evil.example/", "http:/",
     "///", "/login", "/message/../..", "/\r\nSet-Cookie: a=b", "javascript:alert(1)", "",
     f"/?token={TOKEN}#x\n"],
)  # fmt: skip
def test_nobody_is_led_anywhere_else_after_logging_in(nobody, wanted):
    answer = nobody.post("/login", data={"token": TOKEN, "next": wanted})

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    ("method", "path", "form"),
    [
        ("GET", "/?token=", None),
        ("GET", f"/?token={OTHER.token_of('')}", None),
        ("GET", "/?token=%ff%00%3Cscript%3E", None),
        ("GET", "/?token=" + "%41" * 9000, None),
        ("POST", "/login", b"token=guess"),
        ("POST", "/login", b"token=guess&token=" + b"x" * 999),
        ("POST", "/login", b""),
        ("POST", "/login", b"&".join([b"a=b"] * 100)),
    ],
)
def test_a_wrong_token_is_told_and_counted_and_never_shown(nobody, method, path, form):
    answer = nobody.request(method, path, content=form)

    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert "not the token" in Page(answer.text).text
    assert "script" not in re.sub(r"<style>.*?</style>", "", answer.text, flags=re.DOTALL)
    assert nobody.forbidden() == 1


def test_another_login_begins_another_session_and_logging_out_ends_it(bare):
    before = bare.session, bare.form
    bare.post("/login", data={"token": TOKEN})
    assert bare.session != before[0]
    assert bare.form != before[1]

    answer = bare.post("/logout", data={"form": bare.form})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert bare.session is None
    assert bare.get("/").status_code == 403


# ---- sessions and forms that are not ours ----


def signed(data, secret=ACCESS.secret):
    return TimestampSigner(secret).sign(b64encode(data)).decode()


@pytest.mark.parametrize(
    "session",
    [
        signed(b'{"user": "", "form": "x"}', OTHER.secret),
        signed(b"{}"),
        signed(b'{"user": "ann", "form": "x"}'),  # who has no page here
        b64encode(b'{"user": "", "form": "x"}').decode(),
        TOKEN,
        "",
        "..",
    ],
    ids=["other secret", "empty", "no page", "unsigned", "token", "nothing", "dots"],
)
def test_a_session_that_is_not_ours_sees_and_does_nothing(nobody, session):
    nobody.cookies.set(COOKIE, session, "127.0.0.1")
    assert nobody.get("/").status_code == 403
    assert nobody.forbidden() == 0
    for path in ("/logout", "/tell"):
        answer = nobody.post(path, data={"form": "x", "spam": "1"})
        assert answer.status_code == 403
        assert "You are not logged in any more, so nothing was done." in Page(answer.text).text
    assert nobody.forbidden() == 2


def test_a_session_ends_after_a_month_or_under_another_cookie(bare, monkeypatch):
    session = bare.session
    bare.cookies.set("nbspam-8026", session, "127.0.0.1")
    bare.cookies.delete(COOKIE)
    assert bare.get("/").status_code == 403  # of another server's page

    bare.cookies.set(COOKIE, session, "127.0.0.1")
    now = TimestampSigner("x").get_timestamp()
    for later, status in ((SESSION_SECONDS - 60, 200), (SESSION_SECONDS + 60, 403)):
        monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _, t=now + later: t)
        assert bare.get("/").status_code == status


def test_a_form_must_be_one_of_this_session(bare):
    for form in ({}, {"form": ""}, {"form": Visitor(desk()).form}, {"form": TOKEN}):
        answer = bare.post("/logout", data=form)

        assert answer.status_code == 403
        assert "This form is from an earlier session" in Page(answer.text).text
    assert bare.session is not None
    assert bare.forbidden() == 4


# ---- other sites ----


def test_dns_rebinding_is_refused_even_with_token_and_session(bare):
    for host in ("evil.example:8025", "127.0.0.1:1", ""):
        headers = {"Host": host, "Origin": f"http://{host}"}
        for answer in (
            bare.get("/", headers=headers),
            bare.get(f"/?token={TOKEN}", headers=headers),
            bare.post("/login", data={"token": TOKEN}, headers=headers),
        ):
            assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
            assert answer.text == f"Host is not {HOST}: a name of another site leads here\n"
    capitals = {"Host": "LOCALHOST:8025", "Origin": "http://localhost:8025"}
    assert bare.get("/", headers=capitals).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9000"},  # another server of this machine
        {"Sec-Fetch-Site": "cross-site"},
        {},
    ],
)
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_form_of_another_site_is_refused_even_with_our_session(page, box, headers, kind):
    put(box, 1)
    del page.headers["Origin"]
    for path in ("/logout", "/tell", "/login", "/none"):
        body = f"form={page.form}&spam={key_of(1)}&token={TOKEN}"
        answer = page.post(path, content=body, headers={**headers, "Content-Type": kind})

        assert (answer.status_code, answer.headers["content-type"]) == (403, LINE)
        assert "set-cookie" not in answer.headers
    assert page.desk.teacher.known == {}
    assert page.forbidden() == 4


def test_pages_of_other_sites_may_not_embed_the_page_or_its_parts(bare):
    del bare.headers["Origin"]
    fetched = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}

    assert bare.get("/", headers={**fetched, "Sec-Fetch-Dest": "script"}).status_code == 403


def test_only_a_posted_form_teaches(page, box):
    put(box, 1)
    body = f'--b\r\nContent-Disposition: form-data; name="form"\r\n\r\n{page.form}\r\n--b--'
    for kind in ("application/json", "multipart/form-data; boundary=b"):
        assert page.post("/tell", content=body, headers={"Content-Type": kind}).status_code == 403
    form = {"form": page.form, "spam": key_of(1)}
    assert page.get("/tell", params=form).status_code == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"):
        assert page.request(method, "/tell", data=form).status_code == 405
    assert page.desk.teacher.known == {}


# ---- answers ----


def test_every_answer_forbids_the_browser_all_but_the_page(bare):
    for method, path, form, status in (
        ("GET", "/", {}, 200),
        ("GET", f"/?token={TOKEN}", {}, 303),
        ("GET", "/?token=guess", {}, 403),
        ("GET", "/<script>", {}, 404),
        ("POST", "/none", {}, 403),
        ("PUT", "/", {}, 405),
        ("POST", "/login", {"a": "a" * 20_000}, 413),
    ):
        answer = bare.request(method, path, data=form)
        headers = answer.headers

        assert answer.status_code == status
        policy = headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert re.fullmatch("style-src 'sha256-[^']+'", policy[1])
        assert re.fullmatch("script-src 'sha256-[^']+'", policy[2])
        assert policy[3:] == ["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        kind = "text/html; charset=utf-8" if answer.text.startswith("<!DOCTYPE") else LINE
        assert headers.get("content-type", LINE) == kind


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/<script>", 404, "There is no such page."),
        ("GET", "/message?key=1", 404, "There is no such page."),
        ("GET", "/login", 405, "This address only takes what a form of a page sends."),
        ("POST", "/none", 404, "There is no such page."),
        ("POST", "/tell", 404, "There is no such page."),  # of a page without mail
    ],
)
def test_an_unknown_address_leads_back(bare, method, path, status, words):
    answer = bare.request(method, path, data={"form": bare.form})
    page = Page(answer.text)

    assert answer.status_code == status
    assert words in page.text
    assert ("a", {"href": "/"}) in page.attributes


# ---- the server's counts ----


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
