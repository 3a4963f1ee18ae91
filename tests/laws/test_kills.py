"""Writers and readers that are killed at random moments: see benchmarks/kills.py."""

import re
import subprocess
import sys

import pytest

from support import ROOT


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("kills", [20, pytest.param(500, marks=pytest.mark.slow)])
def test_no_kill_loses_what_was_acknowledged_or_shows_a_torn_state(kills):
    done = subprocess.run(
        [sys.executable, "benchmarks/kills.py", "--kills", str(kills), "--seed", str(kills)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin"},
    )
    (acknowledged,) = re.findall(r"([\d,]+) changes acknowledged, 0 lost", done.stdout)

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(acknowledged.replace(",", "")) > kills
