"""Do to `nbspam serve` what clients and networks do; print what becomes of it.

usage: python benchmarks/serving_faults.py MAIL MODEL [--only NAME ...] [--fuzzed 100000]
           [--vanished 10000] [--seed 18] [--asyncio]

MAIL is a folder with ham/ and spam/, MODEL a model of mail.  A server of this machine's nbspam is
started on sockets in a temporary folder, with a copy of MODEL.  Every answer is compared with the
verdict that the model itself gives in this process.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from functools import partial

from serving_trial import (
    HTTP,
    MILTER,
    SPAMD,
    Server,
    Trial,
    parser_of,
    request,
    run,
    trial_of,
    work_some,
)

_STALLS = 1000


def stalled(trial: Trial) -> str:
    """Let 1,000 connections stall at every place of a request; ask others meanwhile."""
    cuts = (b"", b"CHECK SPAM", b"CHECK SPAMC/1.5\r\nContent-length: 999\r\n\r\nabc")

    async def work(server: Server) -> tuple[Counter[str], float]:
        path = server.paths[SPAMD]
        open_ = [await asyncio.open_unix_connection(path) for _ in range(_STALLS)]
        for place, (_, writer) in enumerate(open_):
            writer.write(cuts[place % len(cuts)])
        await asyncio.sleep(1)
        end, start = time.monotonic() + 5, time.perf_counter()
        done = await trial.load(path, lambda: time.monotonic() > end, [trial.answers])
        seconds = time.perf_counter() - start
        for _, writer in open_:
            writer.close()
        return done, done.total() / seconds

    with trial.server() as server:
        before = server.megabytes()
        done, rate = asyncio.run(work(server))
        grown = server.megabytes() - before
        return f"{_STALLS} stalled: others {dict(done)}, {rate:,.0f}/s; memory +{grown:.1f} MB"


def slow(trial: Trial) -> str:
    """Let 100 clients send a byte at a time; ask others meanwhile."""

    async def client(path: str, n: int) -> str:
        reader, writer = await asyncio.open_unix_connection(path)
        for byte in request(trial.messages[n][:300]):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.03)
        answer = await reader.read()
        writer.close()
        return "answered" if answer.startswith(b"SPAMD/1.1 0 EX_OK") else "WRONG"

    async def work(server: Server) -> tuple[Counter[str], Counter[str]]:
        path = server.paths[SPAMD]
        clients = [asyncio.create_task(client(path, n)) for n in range(100)]
        left = lambda: all(each.done() for each in clients)  # noqa: E731
        done = await trial.load(path, left, [trial.answers], 4)
        return Counter(await asyncio.gather(*clients)), done

    with trial.server() as server:
        ours, others = asyncio.run(work(server))
        return f"100 clients of 30 bytes a second: {dict(ours)}; others {dict(others)}"


def vanished(trial: Trial, number: int) -> str:
    """Let clients go without a word at every place of a request; ask others meanwhile."""
    whole = requests(trial)

    async def client(server: Server, name: str) -> None:
        data = trial.rng.choice(whole[name])
        reader, writer = await asyncio.open_unix_connection(server.paths[name])
        writer.write(data[: trial.rng.choice((3, len(data) // 2, len(data)))])
        end = trial.rng.randrange(3)
        if end == 0:
            await asyncio.sleep(trial.rng.uniform(0, 0.02))
        elif end == 1:
            with contextlib.suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
        writer.transport.abort()  # a socket that goes with bytes unread resets the other side

    async def clients(server: Server) -> None:
        numbers = iter(range(number))

        async def some() -> None:
            for place in numbers:
                await client(server, (SPAMD, HTTP, MILTER)[place % 3])

        await asyncio.gather(*(some() for _ in range(32)))

    async def work(server: Server) -> Counter[str]:
        going = asyncio.create_task(clients(server))
        done = await trial.load(server.paths[SPAMD], going.done, [trial.answers], 4)
        await going
        return done

    with trial.server() as server:
        asyncio.run(work_some(trial, server))
        before = server.megabytes()
        done = asyncio.run(work(server))
        time.sleep(2)  # what is left is stated every second
        left = [server.metric(f"nbspam_{name}") for name in ("queue", "held_bytes")]
        gone = server.metric('nbspam_troubles_total{kind="gone"}')
        grown = server.megabytes() - before
        told = (server.folder / "errors").read_text().splitlines()
        return (
            f"{number:,} clients went: {gone:,.0f} counted; others {dict(done)}; waiting and bytes"
            f" held afterwards {left}; memory +{grown:.1f} MB; {len(told) - 3} lines told"
        )


def requests(trial: Trial) -> dict[str, list[bytes]]:
    """Return requests about the first messages, by protocol."""
    messages = trial.messages[:20]
    return {
        SPAMD: [request(each, "PROCESS") for each in messages],
        HTTP: [
            b"POST /checkv2 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(each) + each
            for each in messages
        ],
        MILTER: [mail_packets(each) for each in messages],
    }


def fuzzed(trial: Trial, number: int) -> str:
    """Send requests of each protocol that are cut, mixed and altered."""
    whole = requests(trial)

    async def work(server: Server) -> Counter[str]:
        found: Counter[str] = Counter()
        numbers = iter(range(number * 3))

        async def client() -> None:
            for place in numbers:
                name = (SPAMD, HTTP, MILTER)[place % 3]
                data = altered(trial.rng, trial.rng.choice(whole[name])[:4000])
                reader, writer = await asyncio.open_unix_connection(server.paths[name])
                try:
                    writer.write(data)
                    writer.write_eof()
                    answer = await asyncio.wait_for(reader.read(), 60)
                    found[f"{name} {'answered' if answer else 'closed'}"] += 1
                except ConnectionError:
                    found[f"{name} closed"] += 1
                except TimeoutError:
                    found[f"{name} HANGS"] += 1
                finally:
                    writer.close()

        await asyncio.gather(*(client() for _ in range(32)))
        return found

    with trial.server() as server:
        asyncio.run(work_some(trial, server))
        pids, before = server.workers, server.megabytes()
        found = asyncio.run(work(server))
        assert server.workers == pids, "a worker ended"
        after = asyncio.run(work_some(trial, server))
        grown = server.megabytes() - before
        told = (server.folder / "errors").read_text()
        shown = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
        return (
            f"{number:,} fuzzed of each protocol: {shown}; afterwards {dict(after)}; memory"
            f" +{grown:.1f} MB; {told.count('error') + told.count('not judged or learned')}"
            " failures told"
        )


def mail_packets(message: bytes) -> bytes:
    """Return a message as a mail system sends it to a milter."""

    def packet(command: bytes, data: bytes) -> bytes:
        return (1 + len(data)).to_bytes(4, "big") + command + data

    offer = b"".join(number.to_bytes(4, "big") for number in (6, 0x1FF, 0x1FFFFF))
    subject = packet(b"L", b"Subject\0 cheap pills\0")
    pieces = [packet(b"O", offer), packet(b"M", b"<a@b.example>\0"), subject, packet(b"N", b"")]
    return b"".join([*pieces, packet(b"B", message[:60_000]), packet(b"E", b"")])


def altered(rng: random.Random, data: bytes) -> bytes:
    """Return data with some bytes changed, cut out, doubled, or all after some place gone."""
    found = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(min(len(found), 300) or 1)
        end = start + rng.randrange(12)
        kind = rng.randrange(5)
        if kind == 0:
            found[start:end] = rng.randbytes(rng.randrange(6))
        elif kind == 1:
            del found[start:end]
        elif kind == 2:
            found[start:start] = found[start:end]
        elif kind == 3:
            found[start:end] = rng.choice((b"\r\n", b"\n\n", b"\0", b"99999999999", b": ", b"-1"))
        else:
            del found[start:]
    return bytes(found)


def main() -> None:
    """Run the faults, and print a line for each."""
    parser = parser_of(__doc__)
    parser.add_argument("--fuzzed", type=int, default=100_000)
    parser.add_argument("--vanished", type=int, default=10_000)
    options = parser.parse_args()
    trial = trial_of(options)
    faults = {
        "stalled": partial(stalled, trial),
        "slow": partial(slow, trial),
        "fuzzed": partial(fuzzed, trial, options.fuzzed),
        "vanished": partial(vanished, trial, options.vanished),
    }
    run(faults, options.only)


if __name__ == "__main__":
    main()
