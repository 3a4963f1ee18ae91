"""The keys and types of `--json`, compared with the tables of docs/reference/json.md both ways."""

import io
import json
import os
import re
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from nbspam.cli.frame import leaves
from nbspam.cli.main import cli
from nbspam.cli.output import echo_json, skipped_json
from nbspam.sharing.logs import LogEnd
from nbspam.verdicts import Skipped
from support import COMMAND_WORDS, ROOT

PAGE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
SECTION = re.compile(r"^## (.*)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
SECTIONS = dict(SECTION.findall(PAGE))
# What is run for each section; those of a command alone are run as elsewhere.
RUNS = {title: f"{title} {COMMAND_WORDS[title]}" for title in SECTIONS if title in COMMAND_WORDS}
RUNS |= {
    "allow": "allow news@shop.example --trust mx.example.org",
    "train --unlabelled": "train TEXTS --unlabelled TEXTS --unlabelled-weight 0.5",
    "table train --em": "table train LIHANG --target Y -m OTHER --em",
    "table explain --factors": "table explain --factors ROWS -m TABLE",
    "eval": "eval FOLDER --intervals",
    "compare": "compare FOLDER --cv 2 --against --pairs --against --no-pairs",
    "merge of parts": "merge PART -o OTHER",
    "held": "held",
    "share status": "share status --share redis://log/lessons",
    "cluster": "cluster TEXTS -k 2",
    "table cluster": "table cluster MELONS -k 2 -n 99",
    "cluster --assignments": "cluster TEXTS -k 2 --assignments",
    "query": "query -m NETWORK --target 好瓜",
    "query --gibbs": "query -m NETWORK --target 好瓜 --gibbs 100",
    "query of the structure": "query -m NETWORK",
    "query --independent": "query -m NETWORK --independent 敲声 色泽",
}
# Each is described with another command.
ALIKE = {
    *("lazy", "unlearn", "relabel", "deny"),
    *(f"table {name}" for name in ("classify", "predict", "lazy", "eval", "compare", "query")),
    *("table update", "table unlearn"),
}
SCALARS = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def documented(title):
    """Return the types of the keys of a section, by key."""
    types = {"version": "integer"}
    for keys, kind in re.findall(r"^\| (`.*?`) \| ([^|]*) \|", SECTIONS[title], re.MULTILINE):
        types |= dict.fromkeys(re.findall(r"`([^`]+)`", keys), kind)
    return types


def fits(value, kind):
    """Return whether a value is of a type that is written in words."""
    if kind.startswith("list of "):
        kind, *null = kind.removeprefix("list of ").split(" or null", 1)
        if value is None:
            return bool(null)
        return isinstance(value, list) and all(fits(each, one(kind)) for each in value)
    if kind.endswith(" by class or null"):
        return value is None or fits(value, kind.removesuffix(" or null"))
    if kind.endswith(" by class"):
        kinds = kind.removesuffix(" by class")
        return isinstance(value, dict) and all(fits(v, one(kinds)) for v in value.values())
    return any(SCALARS[name](value) for name in kind.split(" or "))


def one(kinds):
    """Return the singular of a type: `number or null` of `numbers or nulls`."""
    if kinds.startswith("lists of "):
        return "list of " + kinds.removeprefix("lists of ")
    return re.sub(r"s\b", "", kinds)


def check(value, types, prefix=""):
    """Assert that an object has the keys of a section, and that they have its types."""
    expected = {}
    for path, kind in types.items():
        if path.startswith(prefix):
            name = path.removeprefix(prefix)
            if not re.search(r"[.\[]", name):
                expected[name] = kind
    if not expected:
        return  # an object that has any keys
    assert set(value) == set(expected), prefix
    for name, kind in expected.items():
        assert fits(value[name], kind), (prefix + name, kind, value[name])
        if isinstance(value[name], dict):
            check(value[name], types, f"{prefix}{name}.")
        elif isinstance(value[name], list):
            for each in value[name]:
                if isinstance(each, dict):
                    check(each, types, f"{prefix}{name}[].")


def test_every_command_with_json_has_a_section():
    with_json = {
        name
        for name, command in leaves(cli)
        if any("--json" in each.opts for each in command.params)
    }
    run = {re.match("(table )?[a-z]+", line)[0] for line in RUNS.values()}
    assert run | ALIKE == with_json
    assert set(RUNS) == set(SECTIONS)


@pytest.fixture
def postfix(tmp_path, monkeypatch):
    """Programs that answer as those of a Postfix that holds a message."""
    row = {"queue_name": "hold", "queue_id": "4C1B", "sender": "a@b.example"}
    row["recipients"] = [{"address": "c@d.example"}]
    for name, said in (("postqueue", json.dumps(row)), ("postcat", "Subject: x\n\nbuy pills")):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


@pytest.fixture
def log(monkeypatch):
    """A log that two servers share."""
    end, hosts = partial(LogEnd, "id", 3, 0, 0, 0), partial(dict.fromkeys, "ab", {"read": 3})
    fake = SimpleNamespace(name="redis://log/lessons", end=end, hosts=hosts, close=list)
    monkeypatch.setattr("nbspam.sharing.logs.open_log", lambda *_: fake)


@pytest.mark.usefixtures("postfix", "log")
@pytest.mark.parametrize("title", RUNS)
def test_keys_and_types_are_those_of_the_reference(title, places, nbspam, few_resamples):
    words = [places.get(word, word) for word in RUNS[title].split()]
    _, out, err = nbspam(*words, "--json")
    lines = out.splitlines()

    assert lines, err
    for line in lines:
        value = json.loads(line, parse_constant=lambda name: pytest.fail(name))
        assert value["version"] == 1
        check(value, documented(title))


@pytest.mark.usefixtures("postfix")
@pytest.mark.parametrize("said", ["No such file or directory", "Permission denied"])
def test_only_mail_that_has_left_the_queue_is_left_out(tmp_path, places, nbspam, said):
    failing = f"#!/bin/sh\necho 'postcat: fatal: open queue file 4C1B: {said}' >&2; exit 1\n"
    (tmp_path / "postcat").write_text(failing)
    status, out, err = nbspam("held", "-m", places["MODEL"])
    assert (status, out) == ("denied" in said, "")
    assert ("4C1B: Permission denied; run it as root, or look" in err) == ("denied" in said)


def test_what_is_skipped_has_a_name_and_a_reason():
    skipped = {"skipped": skipped_json([Skipped("a", "a: b")])}
    assert skipped["skipped"] == [{"name": "a", "reason": "b"}]
    check(skipped, {k: v for k, v in documented("train").items() if k.startswith("skipped")})


def test_a_wrong_key_or_type_is_found():
    types = {"a": "integer", "b": "list of objects", "b[].c": "numbers or nulls by class"}

    check({"a": 1, "b": [{"c": {"x": None, "y": 0.5}}]}, types)
    for wrong in (
        {"a": 1},
        {"a": 1.5, "b": []},
        {"a": True, "b": []},
        {"a": 1, "b": [], "d": 1},
        {"a": 1, "b": [{"c": {"x": "1"}}]},
        {"a": 1, "b": [{}]},
    ):
        with pytest.raises(AssertionError):
            check(wrong, types)


def test_a_reader_of_a_pipe_gets_each_result_at_once(monkeypatch):
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe))
    echo_json({"name": "a"})
    assert pipe.getvalue() == b'{"version": 1, "name": "a"}\n'
