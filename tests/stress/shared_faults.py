"""Hosts share lessons while they and their log are killed, and strangers write rubbish.

tests/sharing/test_logs.py does a little of it.
"""

import random

import pytest

from nbspam.errors import SharedLogError
from nbspam.sharing.logs import open_log
from shared_logs import DAY, SERVERS, Host, message, real_log


def faults(server, folder, n_lessons, n_hosts):
    """Let hosts learn: no lesson is lost, and all models are one."""
    rng = random.Random(1)
    hosts = [Host(folder / f"host{k}", "model", open_log(server.url)) for k in range(n_hosts)]
    taught, rubbish = {}, 0
    for n in range(n_lessons):
        host = rng.choice(hosts)
        label = rng.choice(["ham", "spam"])
        day = DAY + n // 500 + rng.randrange(2)  # clocks disagree around midnight
        host.teach(message(n), label, day)  # acknowledged, be the log there or not
        taught[n] = label
        if n % 300 == 100:
            server.stop()
        if n % 300 == 150:
            for each in hosts:
                with pytest.raises(SharedLogError):
                    each.sharer.send()
            server.start()
        if n % 20 == 0 and not 100 <= n % 300 <= 150:
            stranger = open_log(server.url)
            stranger.append([b"", b"rubbish", b"nbspam lesson {}\n", rng.randbytes(256)])
            stranger.close()
            rubbish += 4
            host.sharer.exchange()
        if n % 45 == 44:
            killed = rng.choice(hosts)  # it forgets all that is not on disk
            killed.start()
    for each in (*hosts, *hosts):
        each.sharer.exchange()
    exports = {host.export() for host in hosts}
    model = hosts[0].opened("")

    assert len(exports) == 1
    assert {n: model.filed(message(n)).label for n in taught} == taught  # none was lost
    reports = [host.sharer.report(False) for host in hosts]
    assert {(each["lag"], each["skipped"]) for each in reports} == {(0, rubbish)}


@pytest.mark.parametrize("kind", SERVERS)
def test_no_lesson_is_lost_and_all_exports_are_equal(kind, tmp_path):
    with real_log(kind, tmp_path / "server") as server:
        faults(server, tmp_path, n_lessons=2000, n_hosts=5)
        while Host.all:
            Host.all.pop().stop()
