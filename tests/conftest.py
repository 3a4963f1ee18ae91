"""Shared by all tests: the embedded mail, and a switch that rewrites golden files."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser):
    parser.addoption("--rewrite-golden", action="store_true", help="write golden files anew")


@pytest.fixture(scope="session")
def mails():
    """The embedded mail: a folder with ham/ and spam/."""
    return ROOT / "corpora" / "mail"
