"""Options: words and their values, their order of precedence, help, and names of files."""

import json
import os
import pty
import re
import subprocess
import sys
from itertools import chain

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbspam.cli import options as kinds
from nbspam.cli.frame import COMMON, FIRST, config_path, leaves, summary
from nbspam.cli.inputs import Labels
from nbspam.cli.main import COMMAND_GROUPS, COMMANDS, TABLE_COMMANDS, TABLE_GROUPS, cli
from nbspam.errors import InputError
from nbspam.sources.files import file_names_in
from nbspam.store.open import load_tokens as load
from support import LIHANG, SPAM, complains, run_nbspam, write_files


def test_a_word_becomes_a_value():
    for kind, word, value in [
        (kinds.FROM_ZERO_OR_AUTO, "0", 0.0),
        (kinds.FROM_ZERO_OR_AUTO, "1e-3", 0.001),
        (kinds.FROM_ZERO_OR_AUTO, "auto", "auto"),
        (kinds.CLASS_PRIOR, "uniform", "uniform"),
        (kinds.CLASS_PRIOR, "0.25,0.75", (0.25, 0.75)),
        (kinds.COST, "2", 2.0),
        (kinds.NAMED_PATH, "cafe\u0301=a=b", ("café", "a=b")),
        (kinds.SHARE, "a=b=0.5", ("a=b", 0.5)),
        (kinds.SHARE_OR_ESTIMATED, "estimated", "estimated"),
        (kinds.LETTER, "F", "F"),
        (kinds.PARTS, "headers,quotes", ("headers", "quotes")),
    ]:
        assert kind.convert(word, None, None) == value
        assert kind.convert(value, None, None) == value


def test_a_word_that_does_not_fit_is_named_with_what_to_do():
    for kind, words in [
        (kinds.FROM_ZERO_OR_AUTO, ["-1", "nan", "inf", "x", ""]),
        (kinds.CLASS_PRIOR, ["0.5,0.6", "1,0", "nan", "x", "-1,2", ""]),
        (kinds.COST, ["0", "-1", "inf", "nan", "dear"]),
        (kinds.NAMED_PATH, ["work", "=path", "work="]),
        (kinds.SHARE, ["spam", "spam=x", "estimated"]),
        (kinds.DECLARED, ["x", "=a", "x=a,a", "x=a\nb", "x=a\rb"]),
        (kinds.LETTER, ["", "FF", "7", "ä", "T"]),
        (
            kinds.SHARD,
            ["0/4", "5/4", "1", "/4", "1/0", "-1/4", "a/b", "1/4/2", "²/4", f"1/{1 << 31}"],
        ),
    ]:
        for word in words:
            with pytest.raises(click.BadParameter) as refused:
                kind.convert(word, None, None)
            assert refused.value.message.startswith(f"{word or repr(word)}: not ")
            assert ";" in refused.value.message


def test_labels_are_in_one_order():
    labels = Labels(spam=("s",), ham=("h", "i"), named=(("work", "w"),))
    assert labels.paths == [("spam", "s"), ("ham", "h"), ("ham", "i"), ("work", "w")]


# ---- the configuration file: defaults of options ----


def test_the_file_is_where_each_system_keeps_them(monkeypatch):
    for platform, variables, folder in [
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x"),
        ("linux", {"XDG_CONFIG_HOME": "relative", "HOME": "/home/ann"}, "/home/ann/.config"),
        ("darwin", {"HOME": "/home/ann"}, "/home/ann/Library/Application Support"),
        ("darwin", {"XDG_CONFIG_HOME": "/x"}, "/x"),
    ]:
        monkeypatch.setattr(sys, "platform", platform)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

        assert config_path() == os.path.join(folder, "nbspam", "config.toml")


def test_the_file_sets_options(nbspam, trained, config):
    for text, label in [
        ("[classify]\nfp-cost = 1e9\n", "ham"),
        ("[common]\nfp-cost = 1e9\n", "ham"),
        ("[common]\nfp-cost = 1e9\n[classify]\nfp-cost = 2\n", "spam"),
        ("[predict]\nfp-cost = 1e9\n", "spam"),
        ('[classify]\nprior = "spam=1e-9"\n', "ham"),
        ('[classify]\nprior = ["spam=1e-9"]\n', "ham"),
        ("[common]\njson = true\n", "{"),
        ("[common]\njson = false\n", "spam"),
        ("", "spam"),
        ("\ufeff[classify]\r\nfp-cost = 1e9\r\n", "ham"),  # of an editor of Windows
    ]:
        config.write_bytes(text.encode())

        assert nbspam("classify", stdin=SPAM)[1].startswith(label)
        assert nbspam("classify", "--no-config", stdin=SPAM)[1].startswith("spam")
    config.write_text("[common]\njson = true\n")
    said = "--json and -0: two forms of answer; leave out one; --json is set in"
    assert complains(nbspam("classify", "-0"), 2, f"{said} {config}, which --no-config ignores")


def test_options_win_over_the_environment_and_that_over_the_file(
    nbspam, trained, config, monkeypatch
):
    config.write_text("[classify]\nfp-cost = 1e9\n[tokens]\npairs = true\n")
    monkeypatch.setenv("NBSPAM_TRAIN_ALPHA", "2")
    said = "adds nothing; leave out one; --alpha is set by NBSPAM_TRAIN_ALPHA"
    assert complains(nbspam("train", "--estimate", "mle", "."), 2, said)
    monkeypatch.setenv("NBSPAM_CLASSIFY_FP_COST", "2")
    assert nbspam("classify", stdin=SPAM)[1].startswith("spam")
    assert nbspam("classify", "--fp-cost", "1e9", stdin=SPAM)[1].startswith("ham")
    monkeypatch.setenv("NBSPAM_CLASSIFY_PRIOR", "spam=1e-9")
    for value, shown in (("1", "{"), ("0", "ham")):
        monkeypatch.setenv("NBSPAM_CLASSIFY_JSON", value)
        assert nbspam("classify", stdin=SPAM)[1].startswith(shown)
    monkeypatch.setenv("NBSPAM_TRAIN_ALPHA", "much")
    assert complains(nbspam("train"), 2, "NBSPAM_TRAIN_ALPHA much: not a number from 0 up")
    # Options that turn a default off can be set.
    assert "cheap pills" in nbspam("tokens", stdin=SPAM)[1]
    assert "cheap pills" not in nbspam("tokens", "--no-pairs", stdin=SPAM)[1]


def test_paths_may_be_below_home_if_there_is_any(nbspam, trained, config, monkeypatch):
    config.write_text('[common]\nmodel-file = "~/m.nbspam"\nverbose = true\n')
    monkeypatch.delenv("NBSPAM_MODEL")
    monkeypatch.setenv("HOME", str(trained.parent))

    status, out, err = nbspam("predict", stdin=SPAM)
    assert (status, out) == (0, "spam\n")
    assert f"nbspam: configuration {config}\n" in err
    assert nbspam("predict", "-q", stdin=SPAM)[2] == ""
    assert nbspam.out("predict", "--no-config", "--model-file=~/m.nbspam", stdin=SPAM) == out
    trained.with_name("new.eml").write_bytes(SPAM)
    assert nbspam("update", "--spam=~/new.eml")[0] == 0
    assert nbspam("update", "--label=spam=~/new.eml")[1] == "already known 1\n"
    assert nbspam("explain", "-q", "--report=~/page.html", "~/new.eml")[0] == 0
    assert trained.with_name("page.html").exists()
    within = "table", "compare", LIHANG, "--target", "Y", "--against", "--structure ~/no"
    assert complains(nbspam(*within, "-q"), 1, f"{trained.with_name('no')}: No such file")
    config.unlink()
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    # As expanduser says it of a user that the system does not know.
    monkeypatch.setattr(os.path, "expanduser", str)
    assert complains(nbspam("classify", stdin=SPAM), 2, "this user has no home folder; set HOME")
    assert nbspam("classify", "-m", trained, stdin=SPAM)[0] == 0


@pytest.mark.parametrize(
    ("command", "option", "status"), [("classify", "exit-code", 3), ("filter", "tempfail", 75)]
)
def test_a_status_of_failures_holds_wherever_it_is_set(
    nbspam, tmp_path, config, monkeypatch, command, option, status
):
    none = ("-m", tmp_path / "none.nbspam")
    assert nbspam(command, *none, stdin=SPAM)[0] == 1
    config.write_text(f"[{command}]\n{option} = true\n")
    assert nbspam(command, *none, stdin=SPAM)[0] == status
    assert nbspam(command, *none, "--no-config", stdin=SPAM)[0] == 1
    monkeypatch.setenv(f"NBSPAM_{command}_{option}".replace("-", "_").upper(), "1")
    assert nbspam(command, *none, "--no-config", stdin=SPAM)[0] == status


def test_a_wrong_file_is_refused_in_one_line_that_names_it(nbspam, trained, config):
    for text, words in [
        ("[common", "not TOML: Expected ']'"),
        ("[common]\na = '\xff'", "not TOML: "),
        (f"a = {'[' * 3000}{']' * 3000}", "not TOML: "),
        ("fp-cost = 2", "fp-cost: in no table; write it under [common]"),
        ("common = 2", "common: in no table"),
        ("[table]\njson = true", "table.json: in no table; write it under [table.COMMAND]"),
        ("[clasify]", "[clasify]: no such command; did you mean classify?"),
        ("[classify]\nfp_cost = 2", "[classify] fp_cost: no such option; did you mean fp-cost?"),
        ("[classify]\nsources = 'x'", "[classify] sources: no such option"),
        ("[classify]\nno-config = true", "[classify] no-config: no such option"),
        ("[common]\nfp-cots = 2", "[common] fp-cots: no such option; did you mean fp-cost?"),
        ("[common]\nxyzzy = 2", "[common] xyzzy: no such option; mend the file, or give --no-c"),
        ("[classify]\njson = 1", "[classify] json: not true or false"),
        ("[classify]\nfp-cost = true", "[classify] fp-cost: not a string or a number"),
        ("[classify]\nfp-cost = [2]", "[classify] fp-cost: not a string or a number"),
        ('[classify]\nmodel-file = "~\\u0000"', "[classify] model-file: has NUL, as no"),
        ("[classify]\nfp-cost = 'x'", "[classify] fp-cost: x: not a number above 0"),
        ("[classify]\njobs = 0", "[classify] jobs: 0 is not in the range x>=1"),
        ("[classify]\njobs = 'x'", "[classify] jobs: 'x' is not a whole number"),
        ("[classify]\nprior = [true]", "[classify] prior: not a string or a number or a list of"),
    ]:
        config.write_bytes(text.encode("latin-1"))

        assert complains(nbspam("classify", stdin=SPAM), 2, f"{config}: {words}")
        assert nbspam("classify", "--no-config", stdin=SPAM)[0] == 0
        assert nbspam("classify", "--help")[0] == nbspam("help", "classify")[0] == 0

    # It stops only the commands that it concerns.
    config.write_text("[common]\ncv = 5\n[eval]\nfp-cots = 2\n[filter]\nsure = 2\n")
    assert nbspam("predict", stdin=SPAM)[0] == 0
    assert complains(nbspam("eval"), 2, "[eval] fp-cots: no such option")
    # The filter passes mail on.
    status, out, err = nbspam("filter", stdin=SPAM)
    assert (status, out) == (2, SPAM.decode())
    assert "[filter] sure: 2.0 is not in the range" in err
    config.unlink()
    config.mkdir()
    assert complains(nbspam("classify", stdin=SPAM), 2, f"{config}: not a file")
    config.rmdir()
    os.mkfifo(config)  # opening it would wait
    assert complains(nbspam("classify", stdin=SPAM), 2, f"{config}: not a file")


# ---- arguments ----


def test_files_of_a_glob_and_standard_input_have_the_class(nbspam, trained, folder, tmp_path):
    messages = {f"{n}:2,S": SPAM + b"new %d\n" % n for n in range(3)}
    new = sorted(write_files(tmp_path / ".Spam" / "cur", messages).iterdir())
    status, out, err = nbspam("update", *new)
    assert (status, out, err.count(": no label\n")) == (1, "skipped 3\n", 3)
    hint = "nbspam: update: state their class by --spam PATH, --ham PATH or --label NAME=PATH\n"
    assert err.endswith(f"\n{hint}")
    assert nbspam("update", "--spam", *new) == (0, "learned 3\n", "")
    result = nbspam("update", "--spam", new[0], "--spam", *new[1:], "-", stdin=SPAM + b"x")
    assert result == (0, "learned 1, already known 3\n", "")
    assert load(str(trained)).table.class_count.tolist() == [2, 6]
    # Folders and tables that state classes keep theirs, and a folder without any is skipped.
    assert nbspam("update", "--ham", *new, folder)[1] == "already known 4, moved 3\n"
    (tmp_path / "t.csv").write_text("label,text\nham,lunch on friday\n")
    status, out, err = nbspam("update", "--spam", new[0], tmp_path / "t.csv", new[0].parent)
    assert (status, out) == (1, "learned 1, moved 1, skipped 2\n")
    assert "no label" in err
    two = ("--ham", new[1], "--spam", new[2], tmp_path / "t.csv", folder)
    assert nbspam("update", *two)[:2] == (0, "already known 6, moved 1\n")


def test_many_stated_paths_take_no_time_squared(nbspam, model, tmp_path, monkeypatch):
    write_files(tmp_path, {f"{k % 2}-{k}": b"Subject: %d\n\nword\n" % k for k in range(90)})
    asked, realpath = [], os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda *of: asked.append(of) or realpath(*of))
    patterns = ("--label", f"ham={tmp_path}/0-*", "--label", f"spam={tmp_path}/1-*")

    assert nbspam("train", *patterns)[1].startswith("read 90 messages (45 ham, 45 spam)")
    assert len(asked) < 10 * 90


@pytest.mark.parametrize(("command", "typed", "printed"), [
    ("classify", b"Subject: cheap pills\n\nBuy now.\n", "spam\t"),
    ("predict", b"", "ham"),
    ("filter", b"Subject: cheap pills\n\nBuy now.\n", "X-Nbspam: spam"),
    ("filter", b"", "X-Nbspam: ham"),
])  # fmt: skip
def test_at_a_terminal_it_says_that_it_waits_for_one_end(trained, command, typed, printed):
    typing, terminal = pty.openpty()
    os.write(typing, typed + b"\x04")
    status, out, err = run_nbspam(command, stdin=terminal)

    why = "-" if command == "filter" else "no SOURCE"
    assert err.startswith(f"nbspam: {why}: reading from this terminal; end with Ctrl-D\n")
    assert (status, out.startswith(printed)) == (0, True)


# ---- help: commands and options in groups, whole sentences, `nbspam help` ----


TITLE = re.compile(r"^(\S.*):$", re.MULTILINE)
LEAVES = dict(leaves(cli))


def options(command):
    return [each for each in command.params if isinstance(each, click.Option)]


def test_without_a_command_the_commands_are_listed_each_in_one_group_and_by_a_sentence(nbspam):
    assert len({*COMMANDS}) == len(COMMANDS)
    assert len({*TABLE_COMMANDS}) == len(TABLE_COMMANDS)
    assert set(LEAVES) == {*COMMANDS, *(f"table {name}" for name in TABLE_COMMANDS)} - {"table"}
    assert nbspam() == nbspam("--help") == nbspam("help")
    assert nbspam("table") == nbspam("table", "--help") == nbspam("help", "table")

    for words, groups in ((), COMMAND_GROUPS), (("table",), TABLE_GROUPS):
        out = nbspam.out(*words, "--help")
        assert TITLE.findall(out)[: len(groups)] == [*groups]
        assert "..." not in out.split("\n", 1)[1]
        text = " ".join(out.split())
        for name in chain.from_iterable(groups.values()):
            command = LEAVES.get(" ".join([*words, name])) or cli.get_command(None, name)
            assert f" {name} {summary(command)}" in text, name
            assert summary(command).endswith("."), name
        assert max(map(len, out.splitlines())) <= 80


def test_help_lists_every_option_in_a_sentence_those_that_users_need_most_first(nbspam):
    for name, command in LEAVES.items():
        whole = nbspam.out("help", *name.split())
        assert f"nbspam {name}" in command.help  # an example
        assert TITLE.findall(whole)[-1] == COMMON
        listed = re.findall(r"^  (-[^\s,]+)", whole.split(":\n", 1)[1], re.MULTILINE)
        assert sorted(listed) == sorted([*(each.opts[0] for each in options(command)), "-h"])

        out = nbspam.out(*name.split(), "--help")
        names = [each for option in options(command) for each in option.opts]
        assert len(command.first) <= 4
        assert set(command.first) <= set(names)
        assert bool(command.first) == (FIRST in TITLE.findall(out))
        assert max(map(len, out.splitlines())) <= 80
        for each in options(command):
            assert re.search(rf"(?<![\w-]){each.opts[0]}(?![\w-])", out), each.opts
            sentence = each.help.split("  ")[0]
            assert re.match("[A-Z]|[a-z]+, ", sentence), (name, each.opts)
            assert sentence.endswith(".") or "  [default: " in each.help, (name, each.opts)
    for name in ["train", "shard", "table train"]:
        assert len(nbspam(*name.split(), "--help")[1].splitlines()) <= 60


# ---- file names of any bytes survive a round trip, and never reach a terminal raw ----


NAMES = [
    b"plain.eml", b"a b.eml", b"line\nbreak.eml", b"tab\there.eml", b"caf\xe9.eml", b"\xff\xfe",
    b"\x1b[31mred.eml", b"-dash.eml", b" lead.eml", b"quote'\".eml", "好.eml".encode(), b"back\\n",
]  # fmt: skip


def run(*arguments, stdin=b""):
    return run_nbspam(*arguments, input=stdin, text=False)


def test_names_of_any_bytes_go_from_classify_by_xargs_to_update(trained, tmp_path):
    names = [os.fsdecode(name) for name in NAMES]
    files = {name: SPAM + b"number %d\n" % number for number, name in enumerate(names)}
    box = os.fsencode(write_files(tmp_path / "box", files))
    status, out, err = run("classify", "-0", box)
    assert (status, err) == (0, b"")
    answers = [answer.split(b"\t", 2) for answer in out.split(b"\0")[:-1]]
    assert {name for _, _, name in answers} == {os.path.join(box, name) for name in NAMES}

    # As in the guide: the third field of those that are spam.
    pick = "grep -az ^spam | cut -z -f3-"
    names = subprocess.run(pick, shell=True, input=out, capture_output=True, check=True).stdout
    assert names.count(b"\0") == len(NAMES)
    update = ["xargs", "-0", sys.executable, "-m", "nbspam", "relabel", "--to", "spam"]
    done = subprocess.run(update, input=names, capture_output=True, check=True)
    assert done.stdout == b"learned 12 that the model did not know\n"
    again = run("relabel", "--to", "spam", "--files0-from", "-", stdin=names)
    assert again[1] == b"already known 12\n"

    # They are the same in JSON, and escaped where lines end in newlines.
    _, out, _ = run("classify", "--json", box)
    names = {os.fsencode(json.loads(line)["name"]) for line in out.splitlines()}
    assert names == {os.path.join(box, name) for name in NAMES}

    _, out, err = run("classify", box)
    assert len(out.splitlines()) == len(NAMES)
    assert b"\x1b" not in out
    assert b"line\\nbreak.eml" in out
    status, _, err = run("classify", box + b"\x1b/no\nsuch")
    assert (status, err.count(b"\n")) == (1, 1)
    assert b"\x1b" not in err


names = st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name and name != b"-")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, max_size=6), st.booleans())
def test_a_list_of_names_is_read_back(tmp_path, listed, ends):
    data = b"\0".join(listed) + b"\0" * (ends and bool(listed))
    (tmp_path / "list").write_bytes(data)
    if b"\n" in data and b"\0" not in data:
        return  # a list whose names end in newlines, as below
    assert [os.fsencode(name) for name in file_names_in(str(tmp_path / "list"))] == listed


def test_lists_of_names_are_read_after_those_of_the_command_line(
    nbspam, trained, folder, monkeypatch
):
    (folder / "ham" / "1.eml").rename(folder / "ham" / "a\x1b[31m\n.eml")
    files = sorted(folder.rglob("*.eml"))
    listed = b"\0".join(os.fsencode(path) for path in files[1:]) + b"\0"
    both = nbspam("classify", files[0], "--files0-from", "-", stdin=listed)
    assert both == nbspam("classify", *files)
    (folder.parent / "list").write_bytes(listed)
    assert nbspam("classify", files[0], "--files0-from", folder.parent / "list") == both
    written, read = os.pipe()[::-1]
    os.write(written, listed)
    os.close(written)
    assert nbspam("classify", files[0], "--files0-from", f"/dev/fd/{read}") == both
    os.close(read)
    assert nbspam("classify", "--files0-from", os.devnull) == (0, "", "")

    for command in (("classify",), ("predict",), ("explain",), ("classify", "--json")):
        assert nbspam(*command, "--files0-from", "-") == (0, "", "")
    assert nbspam("update", "--files0-from", "-") == (0, "nothing to do\n", "")
    assert complains(nbspam("train", "--files0-from", "-"), 1, "nothing to read")
    assert "\x1b[31m\n" in nbspam("classify", "-0", *files)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b" not in nbspam("classify", "-0", *files)[1]  # a terminal gets no raw names


def test_wrong_lists_are_refused(nbspam, trained, tmp_path, monkeypatch):
    for listed, words in [
        (b"a.eml\nb.eml\n", "--files0-from -: no NUL in it, its names end in newlines"),
        (b"a.eml\0\0b.eml\0", "--files0-from -: name 2 is empty; leave it out"),
        (b"gone.eml\0", "gone.eml: no such file or folder"),
        (b"-\0", "./-: no such file or folder"),
    ]:
        assert complains(nbspam("classify", "--files0-from", "-", stdin=listed), 1, words)

    assert complains(nbspam("classify", "--files0-from", tmp_path / "no"), 1, "no such file")
    for twice in [
        "classify - -",
        "update --spam - --files0-from -",
        "train - --ham -",
        "train - --unlabelled -",
        "update --ham - --sent -",
        "unlearn - --sent -",
        "eval - --test -",
        "table classify - -",
        "lazy - -",
        "table train - --unlabelled - --target y",
    ]:
        said = "nbspam: -: standard input is given twice; give it once"
        assert complains(nbspam(*twice.split()), 2, said), twice
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(InputError, match="-: standard input is closed; give a path"):
        file_names_in("-")
