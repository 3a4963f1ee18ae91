"""Five hosts share lessons while hosts and their log are killed, and strangers write rubbish."""

import random
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings

from nbspam.classifier import training
from nbspam.errors import SharedLogError
from nbspam.sharing import outbox
from nbspam.sharing.logs import open_log
from shared_logs import DAY, SERVERS, STEPS, Host, exports_are_equal, message

N = 2000  # lessons


@pytest.mark.parametrize("kind", SERVERS)
def test_no_lesson_is_lost_and_all_exports_are_equal(kind, tmp_path):
    if not SERVERS[kind].is_there:
        pytest.skip(f"no {kind}")
    rng, server = random.Random(3), SERVERS[kind](tmp_path / "server")
    hosts = [Host(tmp_path / f"host{k}", "model", open_log(server.url)) for k in range(5)]
    taught = set()
    for n in range(N):
        host, m = rng.choice(hosts), rng.randrange(N) if rng.random() < 0.2 else n
        day = DAY + n // 500 + rng.randrange(2)  # clocks disagree around midnight
        host.teach(message(m, rng.randrange(2)), rng.choice(["ham", "spam"]), day)
        taught.add(m)
        if rng.random() < 0.02:
            with suppress(SharedLogError):
                host.sharer.exchange()
        if rng.random() < 0.003:
            host.stop()
            host.start()
        if rng.random() < 0.001:
            server.stop()
            server.start()
        if rng.random() < 0.01:
            stranger = open_log(server.url)
            stranger.append([rng.randbytes(rng.randrange(400))])
            stranger.close()
    for host in (*hosts, *hosts):
        for _ in range(2):  # the first call may notice that its connection has gone
            with suppress(SharedLogError):
                host.sharer.exchange()
    exports = {host.export() for host in hosts}
    model = hosts[0].opened("")
    lost = [m for m in taught if model.filed(message(m)).label is None]
    for host in hosts:
        host.stop()
    server.stop()
    server.remove()

    assert not lost
    assert len(exports) == 1


@pytest.mark.parametrize(
    "share", [training.REFIT_SHARE, 1e9]
)  # of a class, which makes a new file due
@settings(
    max_examples=300, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=STEPS)
def test_after_quiet_all_exports_are_equal(quick_disk, tmp_path, share, acts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox, "SYNCHRONOUS", "OFF")
        patch.setattr(training, "REFIT_SHARE", share)
        exports_are_equal(tmp_path, acts)
