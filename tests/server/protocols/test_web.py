"""The page without a network: who gets in, what is shown, and what attacks are answered."""

import asyncio
import re
from time import time

from http_requests import parsed
from markup import Page
from nbspam.server.page.access import SESSION_SECONDS, Access
from nbspam.server.page.app import WebConnection
from scripted import ACCESS, Client, desk

TOKEN, OTHER = ACCESS.token_of(""), Access(b"2" * 32)
OWN = ("Host: 127.0.0.1:8025", "Origin: http://127.0.0.1:8025")


def session_at(now):
    return f"Cookie: theme=dark; nbspam-8025={ACCESS.new_session(now, '')}"


def asked(method, path, *lines, form=b"", own=OWN):
    """Return a request."""
    head = [f"{method} {path} HTTP/1.1", *own, f"Content-Length: {len(form)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + form


def talk(*requests, **more):
    """Return the client after a conversation."""

    async def converse():
        at = desk(**more)
        at.tally.note("spam", 0.25)
        return await Client(WebConnection, at).send(*requests)

    return asyncio.run(converse())


def answer(request, **more):
    """Return (status, headers, text) of the only answer."""
    [(status, headers, body)] = parsed(talk(request, **more).answer)
    return status, headers, body.decode()


def form_of(cookie):
    """Return the token in the forms of a session."""
    text = answer(asked("GET", "/", cookie))[2]
    return re.search(r'name="form" value="([^"]+)"', text)[1].encode()


# ---- logging in and out ----


def test_the_token_logs_in_and_the_session_shows_the_page():
    for request_bytes in (
        asked("GET", f"/?token={TOKEN}", own=OWN[:1]),
        asked("POST", "/login", form=f"token=+{TOKEN}%0A".encode()),
    ):
        status, headers, body = answer(request_bytes)
        cookie, *rights = parsed_cookie(request_bytes)

        assert (status, headers["location"], body) == (303, "/", "")
        assert rights == ["Path=/", "HttpOnly", "SameSite=Strict", f"Max-Age={SESSION_SECONDS}"]
        assert TOKEN not in cookie
        status, _, text = answer(asked("GET", "/", f"Cookie: {cookie}", own=OWN[:1]))
        assert (status, Page(text).within("h1")) == (200, ["What the server has done"])


def parsed_cookie(request_bytes):
    """Return the parts of the cookie that an answer sets."""
    line = re.search(rb"Set-Cookie: (.*)\r\n", talk(request_bytes).answer)[1]
    return line.decode().split("; ")


def test_without_a_session_every_page_asks_for_the_token():
    for path in ("/", "/?", "/?tokens=x", "/anything", "/logout"):
        status, _, text = answer(asked("GET", path))

        assert status == 403
        page = Page(text)
        assert page.within("label") == ["Token"]
        assert ("form", {"method": "post", "action": "/login"}) in page.attributes
        assert "alert" not in text


def test_a_wrong_token_is_told_and_counted_and_never_shown():
    for request_bytes in (
        asked("GET", "/?token="),
        asked("GET", f"/?token={OTHER.token_of('')}"),
        asked("GET", "/?token=%ff%00%3Cscript%3E"),
        asked("GET", "/?token=" + "%41" * 9000),
        asked("POST", "/login", form=b"token=guess"),
        asked("POST", "/login", form=b"token=guess&token=" + b"x" * 999),
        asked("POST", "/login"),
        asked("POST", "/login", form=b"&".join([b"a=b"] * 100)),
    ):
        client = talk(request_bytes)
        [(status, headers, body)] = parsed(client.answer)

        assert (status, "set-cookie" in headers) == (403, False)
        assert "not the token" in Page(body.decode()).text
        assert b"script" not in re.sub(rb"<style>.*?</style>", b"", body, flags=re.DOTALL)
        assert client.desk.tally.total("trouble forbidden") == 1


def test_who_logs_out_has_no_cookie_any_more():
    cookie = session_at(time())
    form = b"form=" + form_of(cookie)

    status, headers, _ = answer(asked("POST", "/logout", cookie, form=form))
    assert (status, headers["location"]) == (303, "/")
    assert parsed_cookie(asked("POST", "/logout", cookie, form=form)) == [
        "nbspam-8025=", "Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=0",
    ]  # fmt: skip


# ---- attacks ----


def test_a_session_that_ended_or_is_not_ours_sees_and_does_nothing():
    for cookie in (
        session_at(time() - SESSION_SECONDS - 1),
        f"Cookie: nbspam-8026={ACCESS.new_session(time(), '')}",  # of another server's page
        f"Cookie: nbspam-8025={OTHER.new_session(time(), '')}",
        f"Cookie: nbspam-8025={TOKEN}",
        "Cookie: nbspam-8025",
        "Cookie: nbspam-8025=..; \xff",
    ):
        assert answer(asked("GET", "/", cookie))[0] == 403
        status, _, body = answer(asked("POST", "/logout", cookie, form=b"form=x"))
        assert (status, body) == (403, "not logged in, or no longer; open / and log in\n")


def test_dns_rebinding_is_refused_even_with_token_and_session():
    for own in ("Host: evil.example:8025", "Host: 127.0.0.1:1", "X: y"):
        origin = own.replace("Host: ", "Origin: http://")
        for request in (
            asked("GET", "/", session_at(time()), own=(own,)),
            asked("GET", f"/?token={TOKEN}", own=(own,)),
            asked("POST", "/login", form=f"token={TOKEN}".encode(), own=(own, origin)),
        ):
            status, headers, body = answer(request)

            assert (status, "set-cookie" in headers) == (403, False)
            assert body == "Host is not 127.0.0.1:8025: a name of another site leads here\n"


def test_a_form_of_another_site_is_refused_even_with_our_session():
    cookie = session_at(time())
    form = b"form=" + form_of(cookie)
    for lines in (
        ("Origin: http://evil.example",),
        ("Origin: null",),
        ("Origin: http://127.0.0.1:9000",),  # another server of this machine
        ("Sec-Fetch-Site: cross-site",),
        (),
    ):
        client = talk(asked("POST", "/logout", cookie, *lines, form=form, own=OWN[:1]))

        assert client.answer.startswith(b"HTTP/1.1 403 ")
        assert client.desk.tally.total("trouble forbidden") == 1


def test_a_form_must_be_one_of_this_session():
    cookie, other = session_at(time()), session_at(time())
    for form in (b"", b"form=", b"form=" + form_of(other), b"form=" + TOKEN.encode()):
        status, _, body = answer(asked("POST", "/logout", cookie, form=form))

        assert (status, body) == (403, "not a form of this session; open / again\n")


def test_pages_of_other_sites_may_not_embed_the_page_or_its_parts():
    fetched = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script")

    assert answer(asked("GET", "/", session_at(time()), *fetched, own=OWN[:1]))[0] == 403


def test_every_answer_forbids_the_browser_all_but_the_page():
    for request_bytes, status in (
        (asked("GET", "/", session_at(time())), 200),
        (asked("GET", "/"), 403),
        (asked("GET", f"/?token={TOKEN}"), 303),
        (asked("GET", "/<script>", session_at(time())), 404),
        (asked("POST", "/none", session_at(time())), 403),
        (asked("PUT", "/", session_at(time())), 405),
        (asked("POST", "/login", form=b"a" * 20_000), 413),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
    ):
        found, headers, body = answer(request_bytes)

        assert found == status
        policy = headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert re.fullmatch("style-src 'sha256-[^']+'", policy[1])
        assert re.fullmatch("script-src 'sha256-[^']+'", policy[2])
        assert policy[3:] == ["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        kind = "text/html" if body.startswith("<!DOCTYPE") or not body else "text/plain"
        assert headers["content-type"] == f"{kind}; charset=utf-8"


def test_head_is_refused_and_the_connection_ends():
    assert talk(asked("HEAD", "/")).is_over
    assert not talk(asked("GET", "/")).is_over


def test_a_connection_beyond_the_limit_is_answered_and_closed():
    async def converse():
        at = desk(limits={"visitors": 1})
        Client(WebConnection, at)
        return await Client(WebConnection, at).send(asked("GET", "/"))

    client = asyncio.run(converse())
    assert client.answer.startswith(b"HTTP/1.1 503 ")
    assert client.is_over


# ---- what the page shows ----


def test_the_page_shows_what_the_server_has_done():
    async def converse():
        at = desk()
        at.judge.model_time = time() - 7200
        for _ in range(1500):
            at.tally.note("spam", 0.25)
        at.tally.add("lesson moved", 7)
        at.tally.add("trouble busy", 3)
        client = await Client(WebConnection, at).send(asked("GET", "/", session_at(time())))
        return parsed(client.answer)[0][2].decode()

    text = Page(asyncio.run(converse())).text
    for words in (
        "spam 1,500 ", "ham 0 ", "moved to the other class 7 ", "too many at the same time 3 ",
        "An answer takes 250.0 ms on average", "The model was written 2 hours ago.",
    ):  # fmt: skip
        assert words in text
    assert "forbidden" not in text  # what has not happened needs no line


def test_a_server_that_has_done_nothing_says_so():
    text = Page(answer(asked("GET", "/", session_at(time())))[2]).text

    assert "Every request got an answer." in text
