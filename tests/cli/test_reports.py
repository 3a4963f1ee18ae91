"""`--report` of eval, compare and explain writes a page, and says at once where it cannot."""

import pytest

from markup import Page, rows_of
from support import FROM, MELONS, complains


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
    assert (status, "has learned" in err) == (0, how == "model")
    assert out == nbspam(*words[:-2])[1]
    html = page.read_text("utf-8")
    assert f"{mails}{' --online' if how == '--online' else ''}" in Page(html).text
    assert Page(html).within("pre")[0].strip() == out.strip()
    assert html.count("The share of wrong answers by how many messages were learned") == 1


def test_a_model_that_remembers_no_messages_says_how_to_get_a_learning_curve(table, model, page):
    assert table("train", MELONS, "--target", "好瓜")[0] == 0
    assert table("eval", MELONS, "--report", page)[0] == 0
    text = text_of(page)
    assert "the model keeps no rows that smaller models could learn from." in text
    assert "nbspam table eval SOURCE --cv 10 --report FILE.html" in text


def test_week_costs_and_shares_of_the_user_are_those_of_the_page(nbspam, mails, page):
    words = ["--fp-cost", 9, "--prior", "spam=0.8", "--intervals", "--json", "--per-week", 350]
    assert nbspam("eval", mails, "--cv", 2, "--report", page, *words)[0] == 0
    assert "counts a lost ham as 9 missed spam" in text_of(page)
    assert "95 % interval" in text_of(page)
    assert "Of 350 messages a week mixed like these (179 ham, 171 spam)" in text_of(page)


def test_tables_and_chosen_tokens_have_pages(nbspam, mails, page):
    options = ["--target", "好瓜", "--cv", 3, "--report", page]
    assert nbspam("table", "eval", MELONS, *options)[0] == 0
    assert "纹理=清晰" in text_of(page)
    assert (
        nbspam("table", "eval", MELONS, "--target", "好瓜", "--test", MELONS, "--report", page)[0]
        == 0
    )
    options = ["--model", "aode", "--features", 10, "--cv", 2, "--report", page]
    assert nbspam("eval", mails, *options)[0] == 0
    assert 'aria-label="Evidence"' in page.read_text("utf-8")


def test_mail_that_is_read_from_a_pipe_has_its_text(nbspam, mails, page):
    paths = sorted((mails / "spam").iterdir())[:20]
    box = b"".join(FROM + path.read_bytes() + b"\n" for path in paths)
    options = ["-m", page.with_name("m.nbspam")]
    assert nbspam("train", mails, *options)[0] == 0
    words = ["--ham", "-", "--format", "mbox", *options, "--report", page]
    assert nbspam("eval", *words, "-q", stdin=box)[::2] == (0, "")
    assert page.read_text("utf-8").count('<div class="text"') == 20


def test_compare_writes_a_page(nbspam, mails, page):
    words = ["compare", mails, "--cv", 2, "--against", "--pairs", "--report", page]
    out = nbspam.out(*words, "--per-week", 100)
    rows = {row[0]: row for row in rows_of(page.read_text("utf-8"), "Side by side")}
    assert rows[""] == ["", "A", "B"]
    assert "of 100 messages a week: ham lost" in rows
    assert "only A right" in out
    options = ["--target", "好瓜", "--cv", 3, "--against", "--model aode", "--report", page]
    assert nbspam("table", "compare", MELONS, *options)[0] == 0
    assert "--model aode" in text_of(page)


def test_explain_writes_a_page(nbspam, trained, folder, page):
    out = nbspam.out("explain", folder, "--report", page)
    assert page.read_text("utf-8").count("<details") == 4
    assert out == nbspam("explain", folder)[1]
    assert nbspam("explain", "--json", folder, "--report", page)[0] == 0
    assert nbspam("explain", folder / "gone", "--report", page)[0] == 1


def test_a_page_that_cannot_be_written_is_an_error(nbspam, mails, page):
    page.symlink_to("/proc/no.html")
    words = ["eval", mails, "--cv", 2, "--report", page]
    assert complains(nbspam(*words), 1, f"--report {page}", "give another name")
