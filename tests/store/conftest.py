"""No test of stored models waits for the disk, except where it says so itself."""

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass
