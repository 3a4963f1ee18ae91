"""Shared by tests of sources: a model that nothing may change."""

import pytest


@pytest.fixture
def untouched(trained):
    """Where a model is, of which the test changes nothing and to which it adds no lesson."""
    before = trained.read_bytes()
    yield trained
    assert trained.read_bytes() == before
    assert not trained.with_name("m.nbspam.journal").exists()
