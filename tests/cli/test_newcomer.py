"""Words for somebody new: what is missing, what is waited for, and reasons that can be read."""

import pytest

from support import FROM, HAM, SPAM, json_lines

NO_SOURCE = "no SOURCE, and mail on standard input states no class; give labelled mail, such as"


def test_a_table_on_standard_input_states_classes(nbspam, tmp_path):
    rows = b"label,text\nham,lunch\nspam,pills\n"
    assert nbspam("train", "--format", "csv", "-m", tmp_path / "m", stdin=rows)[0] == 0


def test_relabelling_says_which_messages_were_new(nbspam, trained, folder):
    new = folder / "new.eml"
    new.write_bytes(SPAM + b"new\n")
    again = folder / "ham" / "1.eml"
    found = nbspam("relabel", "--to", "spam", new, again)

    assert found == (0, "learned 1 that the model did not know, moved 1\n", "")
    assert nbspam("update", "--ham", "-", stdin=HAM)[1] == "learned 1\n"


def test_what_needs_no_classes_reads_standard_input_without_a_source(nbspam, trained):
    box = b"".join(FROM + each + b"\n" for each in (HAM, SPAM, HAM + b"2\n", SPAM + b"2\n"))
    for command in ("cluster -k 2 --assignments", "classify", "tokens"):
        status, out, err = nbspam(*command.split(), stdin=box)
        assert (status, err) == (0, "")
        assert out


WAITING = "reading from this terminal; end with Ctrl-D\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("classify", "no SOURCE"),
        ("explain -", "-"),
        ("update --spam -", "-"),
        ("unlearn -", "-"),
        ("train FOLDER --sent -", "-"),
        ("eval FOLDER --test -", "-"),
        ("classify --files0-from -", "--files0-from -"),
        ("filter", "-"),
        ("import - -m OTHER", "-"),
        ("table classify -m TABLE", "no SOURCE"),
        ("table update -m TABLE -", "-"),
    ],
)
def test_every_command_that_waits_for_a_terminal_says_so(words, why, nbspam, places, monkeypatch):
    arguments = [places.get(word, word) for word in words.split()]
    line = f"nbspam: {why}: {WAITING}"
    assert line not in nbspam(*arguments, stdin=SPAM)[2]
    monkeypatch.setattr("nbspam.cli.output.at_terminal", lambda: True)
    assert nbspam(*arguments, stdin=SPAM)[2].count(line) == 1
    assert line not in nbspam("-q", *arguments, stdin=SPAM)[2]


PASTED = "nbspam: -: no head of a mail, judged as text; paste the message's source to judge all"


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        (b"buy cheap pills\n\nnow", True),
        (SPAM, False),
        (b"From x@example.com Thu Aug 22 12:36:23 2002\n" + SPAM, False),
        (b"", False),
        (b"\x7fELF", False),  # which has a line of its own
    ],
)
def test_mail_that_is_pasted_without_a_head_is_judged_as_text(data, is_text, nbspam, trained):
    for command in ("classify", "explain", "predict"):
        assert nbspam(command, stdin=data)[2].count(PASTED) == is_text
    assert PASTED not in nbspam("classify", trained.parent.parent / "mails")[2]


def test_a_model_of_texts_judges_what_is_pasted_and_tells_words_instead_of_runs(nbspam, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.nbspam"
    table.write_text("label,text\n" + "ham,hello lunch\nspam,cheap pills\n" * 9)
    assert nbspam("train", "-m", model, table)[0] == 0

    status, out, err = nbspam("explain", "-m", model, stdin=b"cheap pillz")
    assert (status, err) == (0, "")
    assert "char:" not in out
    (pillz,) = [line.split() for line in out.splitlines() if "pillz" in line]
    assert pillz[1:] == ["characters", "pillz"]  # and no counts
    assert "char:pill" in nbspam("explain", "--tokens", "-m", model, stdin=b"cheap pillz")[1]
    (values,) = json_lines(nbspam("explain", "--json", "-m", model, stdin=b"cheap pillz")[1])
    assert [t["counts"] for t in values["tokens"] if t["token"] == "pillz"] == [None]

    assert "char:" not in nbspam("words", "-m", model)[1]
    assert "char:" in nbspam("words", "--tokens", "-m", model)[1]
    assert nbspam("doubts", table) == (0, "", "nbspam: no label is probably wrong\n")
