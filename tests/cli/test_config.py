"""The configuration file: defaults of options."""

import os
import sys

import pytest

from nbspam.cli.frame import config_path
from support import SPAM, complains


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Where the configuration file is: it does not exist yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "nbspam").mkdir(parents=True)
    return tmp_path / "config" / "nbspam" / "config.toml"


def test_the_file_is_where_each_system_keeps_them(monkeypatch):
    for platform, variables, folder in [
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x"),
        ("linux", {"XDG_CONFIG_HOME": "", "HOME": "/home/ann"}, "/home/ann/.config"),
        ("darwin", {"HOME": "/home/ann"}, "/home/ann/Library/Application Support"),
        ("win32", {"APPDATA": "/data"}, "/data"),
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
    ]:
        config.write_text(text)

        assert nbspam("classify", stdin=SPAM)[1].startswith(label)
        assert nbspam("classify", "--no-config", stdin=SPAM)[1].startswith("spam")


def test_options_win_over_the_environment_and_that_over_the_file(
    nbspam, trained, config, monkeypatch
):
    config.write_text("[classify]\nfp-cost = 1e9\n[tokens]\npairs = true\n")
    monkeypatch.setenv("NBSPAM_CLASSIFY_FP_COST", "2")
    assert nbspam("classify", stdin=SPAM)[1].startswith("spam")
    assert nbspam("classify", "--fp-cost", "1e9", stdin=SPAM)[1].startswith("ham")
    # Options that turn a default off can be set.
    assert "cheap pills" in nbspam("tokens", stdin=SPAM)[1]
    assert "cheap pills" not in nbspam("tokens", "--no-pairs", stdin=SPAM)[1]


def test_paths_in_the_file_may_begin_at_home_and_verbose_names_it(
    nbspam, trained, config, monkeypatch
):
    config.write_text('[common]\nmodel-file = "~/m.nbspam"\nverbose = true\n')
    monkeypatch.delenv("NBSPAM_MODEL")
    monkeypatch.setenv("HOME", str(trained.parent))

    status, out, err = nbspam("predict", stdin=SPAM)
    assert (status, out) == (0, "spam\n")
    assert f"nbspam: configuration {config}\n" in err
    assert nbspam("predict", "-q", stdin=SPAM)[2] == ""


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
        ("fp-cost = 2", "fp-cost: in no table; write it under [common]"),
        ("common = 2", "common: in no table"),
        ("[clasify]", "[clasify]: no such command; did you mean classify?"),
        ("[classify]\nfp_cost = 2", "[classify] fp_cost: no such option; did you mean fp-cost?"),
        ("[classify]\nsources = 'x'", "[classify] sources: no such option"),
        ("[classify]\nno-config = true", "[classify] no-config: no such option"),
        ("[common]\nfp-cots = 2", "[common] fp-cots: no such option; did you mean fp-cost?"),
        ("[common]\nxyzzy = 2", "[common] xyzzy: no such option; mend the file, or give --no-c"),
        ("[classify]\njson = 1", "[classify] json: not true or false"),
        ("[classify]\nfp-cost = true", "[classify] fp-cost: not a string or a number"),
        ("[classify]\nfp-cost = [2]", "[classify] fp-cost: not a string or a number"),
        ("[classify]\nfp-cost = 'x'", "[classify] fp-cost: x: not a number above 0"),
        ("[classify]\njobs = 0", "[classify] jobs: 0 is not in the range x>=1"),
        ("[classify]\njobs = 'x'", "[classify] jobs: 'x' is not a whole number"),
        ("[classify]\nprior = [true]", "[classify] prior: not a string or a number or a list of"),
    ]:
        config.write_bytes(text.encode("latin-1"))

        assert complains(nbspam("classify", stdin=SPAM), 2, f"{config}: {words}")
        assert nbspam("classify", "--no-config", stdin=SPAM)[0] == 0
        assert nbspam("classify", "--help")[0] == 0


def test_a_wrong_file_stops_only_the_commands_that_it_concerns(nbspam, trained, config):
    config.write_text("[common]\ncv = 5\n[eval]\nfp-cots = 2\n[filter]\nsure = 2\n")
    assert nbspam("predict", stdin=SPAM)[0] == 0
    assert complains(nbspam("eval"), 2, "[eval] fp-cots: no such option")
    # The filter passes mail on.
    status, out, err = nbspam("filter", stdin=SPAM)
    assert (status, out) == (2, SPAM.decode())
    assert "[filter] sure: 2.0 is not in the range" in err
    config.unlink()
    config.mkdir()
    assert complains(nbspam("classify", stdin=SPAM), 2, f"{config}: Is a directory")
