import subprocess
import sys
from pathlib import Path

import pytest

import nbspam


def modules_after(statement):
    """Return the names of the modules that a new Python has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    where = Path(nbspam.__file__).parents[1]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_nbspam_imports_no_other_module():
    # Counted, not timed: numpy takes 100 ms, and `typing`, the most likely culprit, 10 to 20.
    assert modules_after("import nbspam") - modules_after("pass") == {"nbspam"}


def test_every_name_of_the_face_is_found_where_it_is_said_to_be():
    for name in nbspam.__all__:
        assert getattr(nbspam, name).__name__ == name
    assert set(nbspam.__all__) <= set(dir(nbspam))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        nbspam.trian  # noqa: B018  the access is what raises
