"""Attacks on the page of `nbspam serve --web --review`, whose mailbox is of hostile messages.

Each gets the answer it should get (server/page/test_attacks.py has the tables).  The last attack
is a crowd: while it asks for the page, mail is judged as before.
"""

import asyncio
import os
import random
import re
from collections import Counter
from urllib.parse import quote

import pytest

import serving
from nbspam.store.open import save_classifier
from protocols import check
from server.page.test_attacks import TABLES, Attack, Known, mistakes
from stress.server import ask, megabytes
from support import HAM, make_maildir, write_files

REQUESTS = int(os.environ.get("STRESS_REQUESTS", "100000"))
HOSTILE = (
    "{{ 7*7 }}{% raw %}</title><script>document.title = 1</script><img src=x onerror=alert(1)>"
    "<svg/onload=alert(1)>'\"><style>*{display:none}</style>\u202eexe.\u200btxt\u2066"
)
NEVER = ("\u202e", "\u200b", "\u2066", "<img", "<svg/", ">49<", "\0")  # in a page
WORDS = " ".join(f"w{number}" for number in range(100_000))
NESTED = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5000))


def mail(subject, body, name=HOSTILE):
    return f"From: {name}\nSubject: {subject}\n{body}".encode()


MAIL = {
    "markup": mail(HOSTILE, f"\n{HOSTILE}"),
    "a subject of 1 MB": mail("s" * 1_000_000, "\nx"),
    "100,000 tokens": mail("many", f"\n{WORDS}"),
    "10 MB": mail("large", "\n" + "line of words\n" * 750_000),
    "5,000 parts in each other": mail("nested", NESTED),
    "NUL and no UTF-8": b"From: \xff\0\xfe\nSubject: =?utf-8?b?/w==?= \0\n\n\0\xff" * 1000,
}


PAGES = {
    "the list": "/", "a search for markup": "/?words=" + quote(HOSTILE),
    "a search for SQL": "/?words=" + quote("' OR 1=1 -- %_"), "the course": "/course",
    "the doubtful": "/doubtful",
    **{f"read: {name}": f"/message?key={n}.M1.host" for n, name in enumerate(MAIL)},
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory, mail_classifier):
    """A server whose page shows a mailbox of hostile messages."""
    folder = tmp_path_factory.mktemp("attacked")
    save_classifier(str(folder / "m.nbspam"), mail_classifier)
    messages = {f"new/{number}.M1.host": data for number, data in enumerate(MAIL.values())}
    write_files(make_maildir(folder / "box"), messages)
    web = "--web", f"127.0.0.1:{serving.free_port()}", "--review", str(folder / "box"), "--move"
    with serving.serving(folder / "m.nbspam", folder, "--log", "none", *web) as found:
        yield found


@pytest.fixture(scope="module")
def known(served):
    """All that is known to somebody who has logged in."""
    address = next(w for w in served.errors.read_text().split() if "?token=" in w)
    port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", address).groups()
    browser = serving.Browser(int(port))
    browser.ask("GET", f"/?token={token}")
    return Known(int(port), token, browser.cookie, browser.token())


def answer_to(known, request):
    return serving.ask(known.port, request.encode("latin-1")).decode("latin-1")


@TABLES
def test_every_attack_gets_the_answer_it_should_get(served, known, table):
    told = served.errors.read_text()
    wrong = [mistakes(attack, answer_to(known, attack.request)) for attack in table(known)]

    assert [each for each in wrong if each] == []
    assert served.errors.read_text() == told


def test_nothing_of_hostile_messages_is_more_than_text(known):
    for name, path in PAGES.items():
        answer = answer_to(known, known.request(path=path)).encode("latin-1").decode()
        assert answer.startswith("HTTP/1.1 200 "), name
        assert [each for each in NEVER if each in answer] == [], name
        assert max(answer.count("<script"), answer.count("<style")) == 1, name


def test_a_hundred_thousand_requests_get_the_answers_they_should_get(served, known):
    attacks = [attack for table in TABLES.args[1] for attack in table(known)]
    ours = [Attack(name, known.request(path=path), 200) for name, path in PAGES.items()]
    weights = [1 if name.startswith("read") else 200 for name in PAGES]  # they take long
    told, pids, sizes, wrong = served.errors.read_text(), served.pids, [], []
    rng, numbers = random.Random(31), iter(range(REQUESTS))

    async def visitor():
        for n in numbers:
            [attack] = rng.choices(ours, weights) if n % 2 else rng.choices(attacks)
            answer = await ask(known.port, attack.request.encode("latin-1"))
            wrong.extend(mistakes(attack, answer.decode("latin-1")))
            if n % (REQUESTS // 20) == 0:
                sizes.append(megabytes(served))

    async def visitors():
        await asyncio.gather(*(visitor() for _ in range(16)))

    asyncio.run(visitors())
    print(f"{REQUESTS:,} requests; MB: " + " ".join(f"{each:.0f}" for each in sizes))
    assert wrong == []
    assert served.errors.read_text() == told
    assert served.pids == pids


def test_mail_is_judged_while_ten_thousand_visitors_ask_for_the_page(served, known):
    get = known.request(Connection="close")
    room = asyncio.Semaphore(1000)  # files that this process may open
    statuses = Counter()

    async def visit():
        async with room:
            statuses[(await ask(known.port, get.encode()))[9:12]] += 1

    async def crowd():
        visits, wrong = asyncio.gather(*[visit() for _ in range(10_000)]), 0
        while not visits.done():
            answer = await ask(served.spamd, check(HAM))
            wrong += not answer.startswith(b"SPAMD/1.1 0 EX_OK")
            await asyncio.sleep(0.02)
        return wrong

    assert asyncio.run(crowd()) == 0
    assert statuses[b"200"] > 0
    assert set(statuses) <= {b"200", b"503", b""}
