"""Requests of somebody who is logged in to the page, and its answers, without a network."""

import asyncio
import re
from time import time
from urllib.parse import urlencode

from http_requests import parsed
from mailboxes import boxes
from markup import Page
from nbspam.server.page.app import WebConnection
from scripted import ACCESS, Client, desk

OWN = ("Host: 127.0.0.1:8025", "Origin: http://127.0.0.1:8025")
SESSION = ACCESS.new_session(time(), "")
FORM = ACCESS.form_token(SESSION)


def asked(method, path, form=None, *lines):
    """Return a request of somebody who is logged in."""
    data = urlencode(form or {}).encode()
    head = [f"{method} {path} HTTP/1.1", *OWN, f"Cookie: nbspam-8025={SESSION}", *lines]
    return "\r\n".join([*head, f"Content-Length: {len(data)}", "", ""]).encode() + data


def tell(**form):
    return asked("POST", "/tell", {"form": FORM, **form})


def talk(tmp_path, *requests, **choices):
    """Return the desk, and (status, headers, text) of each answer, asked one after the other."""
    return conversation(lambda: desk(mailboxes=boxes(tmp_path), **choices), requests)


def conversation(make, requests):
    """Return a desk, and the answers of its page; see `talk`.

    make: makes the desk, in the loop that is then running.  requests: functions among them are
    called in their place.
    """

    async def converse():
        at = make()
        client, answers = Client(WebConnection, at), []
        for request in requests:
            if callable(request):
                request()
                continue
            number = len(answers)
            await client.send(request)
            async with asyncio.timeout(60):
                while len(answers) == number:
                    await asyncio.sleep(0.005)
                    answers = parsed(client.answer)
        at.reviewer.end()
        return at, [(status, headers, body.decode()) for status, headers, body in answers]

    return asyncio.run(converse())


def shown(tmp_path, path):
    """Return the text of a page."""
    _, [(status, _, text)] = talk(tmp_path, asked("GET", path))
    assert status == 200
    return Page(text)


def items(text):
    """Return the text of each message of a list."""
    return [Page(found).text.strip() for found in re.findall(r"<li.*?</li>", text, re.DOTALL)]
