"""`--report` of eval, compare and explain writes a page, and says at once where it cannot."""

import os

import pytest

from markup import Page, rows_of
from support import ROOT, complains

TABLE = ROOT / "corpora" / "watermelon-3.0.csv"


@pytest.fixture
def page(tmp_path):
    return tmp_path / "page.html"


def text_of(path):
    return Page(path.read_text("utf-8")).text


@pytest.mark.parametrize("how", ["--cv", "--online", "--test", "model"])
def test_eval_writes_a_page_in_every_way_of_judging(nbspam, mails, model, page, how):
    options = {"--cv": ["--cv", 3], "--test": ["--test", mails], "--online": ["--online"]}
    if how == "model":
        assert nbspam("train", mails)[0] == 0
    words = ["eval", mails, *options.get(how, []), "--report", page]
    status, out, err = nbspam(*words)
    assert (status, err) == (0, "")
    assert out == nbspam(*words[:-2])[1]
    html = page.read_text("utf-8")
    assert f"{mails}{' --online' if how == '--online' else ''}" in Page(html).text
    assert Page(html).within("pre")[0].strip() == out.strip()
    assert html.count("The share of wrong answers by how many messages were learned") == 1


def test_a_model_that_remembers_no_messages_says_how_to_get_a_learning_curve(table, model, page):
    assert table("train", TABLE, "--target", "好瓜")[0] == 0
    assert table("eval", TABLE, "--report", page)[0] == 0
    text = text_of(page)
    assert "the model keeps no rows that smaller models could learn from." in text
    assert "nbspam table eval SOURCE --cv 10 --report FILE.html" in text


def test_a_week_is_that_of_the_user(nbspam, mails, page):
    assert nbspam("eval", mails, "--cv", 2, "--report", page, "--per-week", 350)[0] == 0
    assert "Of 350 messages a week mixed like these (179 ham, 171 spam)" in text_of(page)


def test_stated_costs_and_shares_are_those_of_the_page(nbspam, mails, page):
    words = ["--fp-cost", 9, "--prior", "spam=0.8", "--intervals", "--json"]
    assert nbspam("eval", mails, "--cv", 2, "--report", page, *words)[0] == 0
    assert "counts a lost ham as 9 missed spam" in text_of(page)
    assert "95 % interval" in text_of(page)


def test_tables_and_chosen_tokens_have_pages(nbspam, mails, page):
    options = ["--target", "好瓜", "--cv", 3, "--report", page]
    assert nbspam("table", "eval", TABLE, *options)[0] == 0
    assert "纹理=清晰" in text_of(page)
    assert (
        nbspam("table", "eval", TABLE, "--target", "好瓜", "--test", TABLE, "--report", page)[0]
        == 0
    )
    options = ["--model", "aode", "--features", 10, "--cv", 2, "--report", page]
    assert nbspam("eval", mails, *options)[0] == 0
    assert 'aria-label="Evidence"' in page.read_text("utf-8")


def test_mail_that_is_read_from_a_pipe_has_its_text(nbspam, mails, page):
    box = b"".join(
        b"From a Thu Aug 22 12:36:00 2002\n%s\n" % path.read_bytes()
        for path in sorted((mails / "spam").iterdir())[:20]
    )
    assert nbspam("train", mails, "-m", page.with_name("m.nbspam"))[0] == 0
    words = ["--ham", "-", "--format", "mbox", "-m", page.with_name("m.nbspam")]
    status, _, err = nbspam("eval", *words, "--report", page, stdin=box)
    assert (status, err) == (0, "")
    assert "spam" in text_of(page)
    assert page.read_text("utf-8").count('<div class="text"') == 20


def test_compare_writes_a_page(nbspam, mails, page):
    words = ["compare", mails, "--cv", 2, "--against", "--pairs", "--report", page]
    status, out, err = nbspam(*words, "--per-week", 100)
    assert (status, err) == (0, "")
    rows = {row[0]: row for row in rows_of(page.read_text("utf-8"), "Side by side")}
    assert rows[""] == ["", "A", "B"]
    assert "of 100 messages a week: ham lost" in rows
    assert "only A right" in out
    options = ["--target", "好瓜", "--cv", 3, "--against", "--model aode", "--report", page]
    assert nbspam("table", "compare", TABLE, *options)[0] == 0
    assert "--model aode" in text_of(page)


def test_explain_writes_a_page(nbspam, trained, folder, page):
    status, out, err = nbspam("explain", folder, "--report", page)
    assert (status, err) == (0, "")
    assert page.read_text("utf-8").count("<details") == 4
    assert out == nbspam("explain", folder)[1]
    assert nbspam("explain", "--json", folder, "--report", page)[0] == 0
    status, _, err = nbspam("explain", folder / "gone", "--report", page)
    assert status == 1


def test_wrong_names_are_refused_before_any_work(nbspam):
    for command in ["eval", "compare", "explain"]:
        for name, wrong in [
            ("-", "ends in .html"),
            ("page.pdf", "ends in .html"),
            ("no/page.html", "no folder"),
        ]:
            options = {"eval": ["--cv", "2"], "compare": ["--against", "--pairs"]}
            words = [command, "gone", *options.get(command, []), "--report", name]
            assert complains(nbspam(*words), 2, f"--report {name}", wrong)


def test_options_that_would_do_nothing_are_refused(nbspam, page):
    assert complains(
        nbspam("eval", "x", "--cv", 2, "--per-week", 9), 2, "--per-week: for the report"
    )
    words = ["table", "explain", "x", "--factors", "--report", page]
    assert complains(nbspam(*words), 2, "--report and --factors")


def test_a_page_that_cannot_be_written_is_an_error(nbspam, mails, tmp_path):
    (tmp_path / "closed").mkdir()
    place = tmp_path / "closed" / "page.html"
    place.write_text("")
    place.chmod(0o400)
    if os.geteuid() == 0:
        place.unlink()
        place.symlink_to("/proc/no.html")
    words = ["eval", mails, "--cv", 2, "--report", place]
    assert complains(nbspam(*words), 1, f"--report {place}", "give another name")
