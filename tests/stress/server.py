"""Faults of clients, networks, workers and disks while a server runs.

Each fault is a function of a Trial and of how much of it there is; tests/server/test_served.py
does a little of each.  Every answer is compared with the verdict that the model gives in this
process: while some clients misbehave, workers are killed or the model is replaced, all others are
answered rightly, and no lesson that was acknowledged is ever lost.
"""

import asyncio
import contextlib
import os
import random
import resource
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from nbspam.mail.verdict_headers import HeaderChoices, headers_of, score_of
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import save_classifier
from protocols import OFFER, check, milter_mail, milter_parts, packet, post, tell
from serving import WITH_UVLOOP, serving, until
from stress.hostile import Inputs, garbled

FULL = 20_000  # bytes of a file, after which the disk is full
QUIET = "--jobs", "2", "--log", "none"
PIECES = b"\r\n", b"\n\n", b"\0", b"99999999999", b": ", b"-1"


@pytest.fixture(scope="module")
def trial(tmp_path_factory, mails, mail_classifier):
    path = tmp_path_factory.mktemp("stressed") / "m.nbspam"
    save_classifier(str(path), mail_classifier)
    return Trial(mails, path)


# ---- a server, its load, and right answers ----


async def opened(address):
    if isinstance(address, int):
        return await asyncio.open_connection("127.0.0.1", address)
    found = await asyncio.open_unix_connection(address)
    # While the server's backlog is full, asyncio returns a socket that is not connected.
    while not found[1].get_extra_info("peername"):
        await asyncio.sleep(0.01)
        found = await asyncio.open_unix_connection(address)
    return found


async def ask(address, data):
    """Return the answer to a request, as far as it comes before the connection ends."""
    try:
        reader, writer = await opened(address)
        try:
            writer.write(data)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.transport.abort()  # at once, even if some of a request was never taken
    except OSError:
        return b""


def megabytes(served):
    """Return the memory of all workers; what they share is divided among them."""
    lines = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in served.pids]
    found = [line.split()[1] for text in lines for line in text.splitlines() if "Pss:" in line]
    return sum(map(int, found)) / 1024


def n_files(served):
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in served.pids)


def answers_of(path, messages):
    """Return the answer of spamd's CHECK to each message, by the model in this process."""
    classifier = StoredModel(str(path)).classifier()
    rule = classifier.rule
    verdicts = classifier.classify([Item("-", None, each) for each in messages], rule=rule)
    return [
        f"SPAMD/1.1 0 EX_OK\r\nSpam: {verdict.label == 'spam'} ;"
        f" {score_of(verdict, rule):.1f} / 5.0\r\n\r\n".encode()
        for verdict in verdicts
    ]


class Trial:
    """The material of all faults: messages, a model and its answers."""

    def __init__(self, mails, model, n_messages=100, uvloop=WITH_UVLOOP):
        self.uvloop = uvloop
        paths = sorted(mails.rglob("*.eml"))
        random.Random(1).shuffle(paths)
        self.messages = [path.read_bytes() for path in paths[:n_messages]]
        self.model = model
        self.answers = answers_of(model, self.messages)
        self.rng = random.Random(18)

    @contextmanager
    def server(self):
        """Run a server with a copy of the model until the block ends."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copy(self.model, folder / "m.nbspam")
            options = ("--allow-tell", *QUIET)
            model = folder / "m.nbspam"
            with serving(model, folder, *options, uvloop=self.uvloop) as served:
                mapped = Path(f"/proc/{served.pids[0]}/maps").read_text()
                assert ("uvloop" in mapped) == self.uvloop
                yield served

    async def load(self, served, until=lambda: False, times=1 << 60, answers=None, at_once=8):
        """Ask about all messages again and again; return how many answers were of each kind.

        times: at most.  answers: the right ones of every model that there may be.
        """
        found, numbers = Counter(), iter(range(times))

        async def client():
            for number in numbers:
                if until():
                    return
                n = number % len(self.messages)
                answer = await ask(served.spamd, check(self.messages[n]))
                found[kind_of(answer, [each[n] for each in answers or [self.answers]])] += 1

        await asyncio.gather(*(client() for _ in range(at_once)))
        return found

    def answers_rightly(self, served, seconds=1):
        """Return whether all answers are right for some time."""
        end = time.monotonic() + seconds
        return set(asyncio.run(self.load(served, lambda: time.monotonic() > end))) == {"right"}

    def requests(self, served):
        """Return (address, requests about the first messages) of each protocol."""
        messages = self.messages[:20]
        return [
            (served.spamd, [check(each, "PROCESS") for each in messages]),
            (served.http, [post("/checkv2", each) for each in messages]),
            (served.milter, [OFFER + milter_mail(each) for each in messages]),
        ]

    def lesson(self):
        """Return a message that no other is."""
        return b"Message-Id: <%d>\nSubject: x\n\nlesson %d\n" % (
            self.rng.getrandbits(60),
            self.rng.getrandbits(40),
        )


def kind_of(answer, right):
    if answer in right:
        return "right"
    if answer == b"":
        return "closed"
    return "error" if answer.startswith(b"SPAMD/1.0 ") else "wrong"


def count_known(path, messages):
    """Return how many messages a model knows: how many it can un-learn."""
    items = [Item("-", None, data) for data in messages]
    return StoredModel(str(path)).unlearn(items, day=0).unlearned


# ---- clients and networks ----


def stalls(trial, number):
    """Let connections stall at every place of a request: others are answered."""
    cuts = (b"", b"CHECK SPAM", b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\nabc")

    async def work(served):
        open_ = [await opened(served.spamd) for _ in range(number)]
        for place, (_, writer) in enumerate(open_):
            writer.write(cuts[place % len(cuts)])
        await asyncio.sleep(0.5)
        end = time.monotonic() + 3
        done = await trial.load(served, lambda: time.monotonic() > end)
        for _, writer in open_:
            writer.close()
        return done

    with trial.server() as served:
        before = megabytes(served)
        assert set(asyncio.run(work(served))) == {"right"}
        assert megabytes(served) - before < 0.06 * number


def slow_clients(trial, number):
    """Let clients send a byte at a time: they are answered, and hold up nobody."""

    async def client(served, n):
        reader, writer = await opened(served.spamd)
        for byte in check(trial.messages[n % len(trial.messages)][:100]):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.03)
        answer = await reader.read()
        writer.close()
        return answer.startswith(b"SPAMD/1.1 0 EX_OK")

    async def work(served):
        clients = [asyncio.create_task(client(served, n)) for n in range(number)]
        done = await trial.load(served, lambda: all(each.done() for each in clients), at_once=4)
        return await asyncio.gather(*clients), done

    with trial.server() as served:
        ours, others = asyncio.run(work(served))
        assert all(ours)
        assert set(others) == {"right"}


def vanishing(trial, number):
    """Let clients go without a word at every place of a request: nothing of them is left."""

    async def client(address, requests):
        data = trial.rng.choice(requests)
        reader, writer = await opened(address)
        writer.write(data[: trial.rng.choice((0, 3, len(data) // 2, len(data)))])
        end = trial.rng.randrange(3)
        if end == 0:
            await asyncio.sleep(trial.rng.uniform(0, 0.02))
        elif end == 1:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        writer.transport.abort()  # a socket that goes with bytes unread resets the other side

    async def clients(served):
        places, numbers = trial.requests(served), iter(range(number))

        async def some():
            for n in numbers:
                await client(*places[n % 3])

        await asyncio.gather(*(some() for _ in range(32)))

    async def work(served):
        going = asyncio.create_task(clients(served))
        done = await trial.load(served, going.done, at_once=4)
        await going
        return done

    with trial.server() as served:
        assert trial.answers_rightly(served)
        told, files = served.errors.read_text(), n_files(served)
        assert set(asyncio.run(work(served))) == {"right"}
        until(lambda: n_files(served) <= files)
        time.sleep(2)  # what is left is stated every second
        metrics = served.metrics()
        assert metrics["nbspam_open_connections"] == 1  # which asks
        assert metrics["nbspam_queue"] == metrics["nbspam_held_bytes"] == 0
        assert metrics['nbspam_troubles_total{kind="gone"}'] > number / 6
        assert served.errors.read_text() == told


def sent_by_milter(message):
    """Return a message as a mail system tells it: without NUL, a colon in each header."""
    pairs, body = milter_parts(message.replace(b"\0", b"")[:200_000])
    return b"".join(name + b":" + value + b"\n" for name, value in pairs) + b"\n" + body


# By protocol: a message as it arrives, and the request for it; answers have its header X-Nbspam.
ASKED = {
    "spamd": (lambda message: message, lambda message: check(message, "PROCESS")),
    "http": (lambda message: message, lambda message: post("/checkv2", message)),
    "milter": (sent_by_milter, lambda message: OFFER + milter_mail(message)),
}


def mixed_requests(trial, number):
    """Ask in each protocol about so many hostile messages; every second request is garbled.

    Each whole request gets the verdict of this process, no worker ends, and none grows on.
    """
    inputs = Inputs(31, trial.messages)
    classifier = StoredModel(str(trial.model)).classifier()

    async def answer_all(address, requests, words):
        """Return which whole requests were not answered rightly."""
        wrong, numbers = [], iter(range(len(requests)))

        async def client():
            for n in numbers:
                # An answer or an end of the connection; TimeoutError if there is neither.
                await ask(address, garbled(trial.rng, requests[n][:4000], PIECES, within=300))
                if words[n] not in (answer := await ask(address, requests[n])):
                    wrong.append((requests[n], words[n], answer))

        await asyncio.gather(*(client() for _ in range(32)))
        return wrong

    def wrong_answers(served, protocol, numbers):
        arrived, request = ASKED[protocol]
        messages = [arrived(inputs(n)) or b"\n" for n in numbers]  # over HTTP, none is judged
        items = [Item("-", None, each) for each in messages]
        verdicts = classifier.classify(items, rule=classifier.rule)
        words = [
            headers_of(each, classifier.rule, HeaderChoices())[0][1].encode() for each in verdicts
        ]
        requests = [request(each) for each in messages]
        return asyncio.run(answer_all(getattr(served, protocol), requests, words))

    with trial.server() as served:
        assert trial.answers_rightly(served)
        pids, sizes = served.pids, []
        for protocol in ASKED:
            for first in range(0, number // 2, 500):
                numbers = range(first, min(first + 500, number // 2))
                assert wrong_answers(served, protocol, numbers) == []
                sizes.append(megabytes(served))
        print(f"{number:,} requests a protocol; MB: " + " ".join(f"{each:.0f}" for each in sizes))
        assert served.pids == pids
        assert trial.answers_rightly(served)
        told = served.errors.read_text()
        assert "error" not in told
        assert "not judged or learned" not in told


# ---- memory, and room ----


def large_messages(trial, number):
    """Send messages of 30 MB at once beside 300 small ones: the small are all answered rightly."""
    large = check(b"Subject: large\n\n" + b"line of words\n" * 2_140_000)

    async def work(served):
        large_ones = asyncio.gather(*(ask(served.spamd, large) for _ in range(number)))
        small = await trial.load(served, times=300)
        return small, Counter(answer.partition(b"\r\n")[0][:14] for answer in await large_ones)

    with trial.server() as served:
        small, found = asyncio.run(work(served))
        print(f"{number} of 30 MB: {dict(found)}")
        assert set(small) == {"right"}
        assert set(found) <= {b"SPAMD/1.1 0 EX", b"SPAMD/1.0 75 E"}
        # As many as one worker has room for, beside small ones.
        assert found[b"SPAMD/1.1 0 EX"] >= min(number, 27)


def idle_clients(trial, number):
    """Let clients be silent: while a worker has room, all others are answered rightly."""

    async def work(served):
        idle = [await opened(served.spamd) for _ in range(number)]
        done = await trial.load(served, times=1000)
        for _, writer in idle:
            writer.close()
        return done

    with trial.server() as served:
        found = asyncio.run(work(served))
        assert set(found) == {"right"}, found
        assert served.metrics()['nbspam_troubles_total{kind="busy"}'] == 0


def short_memory(trial, number):
    """Let large messages find no memory: they are to be sent again, and small ones go on."""
    large = b"Subject: large\n\n" + b"".join(b"w%d " % n for n in range(1_000_000))

    async def work(served):
        asked = (
            (served.spamd, check(large)),
            (served.http, post("/checkv2", large)),
            (served.milter, OFFER + milter_mail(large)),
        )
        found = asyncio.gather(*(ask(*each) for _ in range(number) for each in asked))
        small = await trial.load(served, times=300)
        return small, await found

    with trial.server() as served:
        assert trial.answers_rightly(served)
        for pid in served.pids:
            used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
        small, answers = asyncio.run(work(served))
        print(dict(small))
        # A small one may meet the moment in which nothing is left, and is to be sent again, too.
        assert set(small) <= {"right", "error"}
        assert small["error"] <= 0.03 * small.total()
        kinds = (
            (b"SPAMD/1.1 0 EX_OK", b"SPAMD/1.0 75 EX_TEMPFAIL"),
            (b"HTTP/1.1 200", b"HTTP/1.1 503"),
            (packet(b"c"), packet(b"t")),
        )
        found = Counter(
            kind
            for answer, pair in zip(answers, kinds * number, strict=True)
            for kind in [each for each in pair if answer.startswith(each) or answer.endswith(each)]
        )
        print(dict(found), served.metrics())
        assert found.total() == len(answers)
        assert sum(found[refusal] for _, refusal in kinds) > 0
        assert trial.answers_rightly(served)


# ---- crashes ----


def killed_workers(trial, number):
    """Kill workers at random under load: clients get a right answer or a clean close."""

    killed = []

    async def kill(served):
        while len(killed) < number:
            await asyncio.sleep(trial.rng.uniform(0.1, 0.6))
            if workers := sorted({*served.pids} - {*killed}):
                killed.append(trial.rng.choice(workers))
                os.kill(killed[-1], signal.SIGKILL)

    async def work(served):
        load = trial.load(served, lambda: len(killed) == number)
        return (await asyncio.gather(load, kill(served)))[0]

    with trial.server() as served:
        found = asyncio.run(work(served))
        assert found["right"] > 0
        assert set(found) <= {"right", "closed"}
        until(lambda: len({*served.pids} - {*killed}) == 2)
        assert trial.answers_rightly(served)
        assert served.metrics()['nbspam_restarts_total{cause="killed"}'] == number


def replaced_models(trial, number):
    """Replace the model again and again under load: each answer is of one of the two."""
    with tempfile.TemporaryDirectory() as name:
        other = Path(shutil.copy(trial.model, Path(name) / "other"))
        half = StoredModel(str(other))
        half.unlearn([Item("-", None, data) for data in trial.messages[::2]], day=0)
        half.compact()
        answers = [trial.answers, answers_of(other, trial.messages)]
        assert answers[0] != answers[1]

        async def swap(folder, left):
            while left:
                shutil.copy((other, trial.model)[len(left) % 2], folder / "new")
                os.replace(folder / "new", folder / "m.nbspam")
                left.pop()
                await asyncio.sleep(0.05)

        async def work(served):
            left = [None] * number
            load = trial.load(served, lambda: not left, answers=answers)
            return (await asyncio.gather(load, swap(served.errors.parent, left)))[0]

        with trial.server() as served:
            assert set(asyncio.run(work(served))) == {"right"}
            assert served.metrics()['nbspam_troubles_total{kind="model"}'] == 0


def copied_models(trial, number):
    """Copy a model into the one that is used while messages are judged: all answers are right."""
    copies = []

    async def copy(model, load):
        while not load.done():
            command = await asyncio.create_subprocess_exec("cp", trial.model, model)
            copies.append(await command.wait())
            await asyncio.sleep(0.02)

    async def work(served):
        load = asyncio.create_task(trial.load(served, times=number))
        await copy(served.errors.parent / "m.nbspam", load)
        return load.result()

    with trial.server() as served:
        pids = served.pids
        assert set(asyncio.run(work(served))) == {"right"}
        print(f"{number:,} answers, {len(copies):,} copies")
        assert not any(copies)
        assert served.pids == pids


def full_disk(trial, number):
    """Let the disk be full while the server learns: lessons fail and say so, none is lost."""
    learned, refused = [], Counter()
    with trial.server() as served:
        for pid in (served.process.pid, *served.pids):
            # Python ignores SIGXFSZ, so that a write fails as on a full disk.
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL, resource.RLIM_INFINITY))
        while refused.total() < number:
            data = trial.lesson()
            answer = asyncio.run(ask(served.spamd, tell("spam", data)))
            if b"DidSet: local" in answer:
                learned.append(data)
            else:
                refused[answer.split(b":")[0]] += 1
        assert set(refused) == {b"SPAMD/1.0 75 EX_TEMPFAIL"}
        answer = asyncio.run(ask(served.spamd, check(trial.messages[0])))
        assert answer.startswith(b"SPAMD/1.1 0 EX_OK")
        model = served.errors.parent / "m.nbspam"
        served.stop()
        assert count_known(model, learned) == len(learned)


def killed_servers(trial, number):
    """Kill the whole server while it learns: no acknowledged lesson is lost."""
    learned = []

    async def teach(served):
        while True:
            data = trial.lesson()
            answer = await ask(served.spamd, tell("spam", data))
            if not answer:
                return
            if b"DidSet: local" in answer:
                learned.append(data)

    async def kill(served):
        await asyncio.sleep(trial.rng.uniform(0.05, 1.0))
        pids = [served.process.pid, *served.pids]
        for pid in trial.rng.sample(pids, len(pids)):
            os.kill(pid, signal.SIGKILL)

    async def work(served):
        await asyncio.gather(kill(served), *(teach(served) for _ in range(4)))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(trial.model, folder / "m.nbspam")
        for _ in range(number):
            with serving(folder / "m.nbspam", folder, "--allow-tell", *QUIET) as served:
                asyncio.run(work(served))
        assert len(learned) > number
        assert count_known(folder / "m.nbspam", learned) == len(learned)


FAULTS = {  # how many of each here, and in test_served
    stalls: (1000, 1000), slow_clients: (100, 40), vanishing: (10_000, 600),
    mixed_requests: (100_000, 300), large_messages: (40, 4), idle_clients: (1900, 1200),
    short_memory: (30, 10), killed_workers: (100, 3), replaced_models: (1000, 50),
    copied_models: (8000, 150), full_disk: (200, 5), killed_servers: (300, 5),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_cost_no_right_answer_and_no_lesson(trial, fault):
    fault(trial, FAULTS[fault][0])
