"""Reports have the numbers of the text report, and what strangers wrote is text in them."""

import base64
import hashlib
import re
from dataclasses import replace

import numpy as np
import pytest

import nbspam
from markup import Page, rows_of
from nbspam.decision import LossMatrix, cutoffs
from nbspam.errors import UsageError
from nbspam.evaluation import pages
from nbspam.evaluation.choosing import Compared, compare, compare_items, trade_off
from nbspam.evaluation.evaluation import evaluation_of
from nbspam.evaluation.judging import judge_folds, table_trial
from nbspam.evaluation.metrics import error_rates, wilson_interval
from nbspam.evaluation.online import judge_online
from nbspam.evaluation.report import compared_names, cutoff, nats, rate, short, shown, trial_text
from nbspam.evaluation.witness import Witness
from nbspam.printing import amount_text
from nbspam.settings import PRESETS, SettingsChoices
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import read_records
from nbspam.tables.training import TableSettings, read_table
from support import MELONS, random_trial, texts, trial_of, trial_of_classes

SECTIONS = [
    "In a week", "What other cutoffs would cost", "Both errors at every cutoff",
    "Can its probabilities be believed?", "How well it tells them apart",
    "Would more messages help?", "The strongest words of each class", "What it got wrong",
    "All measures",
]  # fmt: skip


@pytest.fixture(scope="module")
def judged(mails):
    """A cross-validation of the embedded mail, what was seen of it, and its page."""
    witness = Witness()
    items = witness.watched(read_items([str(mails)]))
    trial = judge_folds(items, PRESETS["mail"], 3, 0, with_smaller=True, witness=witness)
    return trial, witness, pages.quality_page(trial, witness, "mails", per_week=300)


def headings(html):
    return [Page(each).text for each in re.findall(r"<h2>(.*?)</h2>", html, re.S)]


def bare(trial, **options):
    """Return the page of a trial of which nothing else was kept."""
    html = pages.quality_page(trial, Witness(), **options)
    return html, Page(html)


def test_the_plainest_numbers_come_first_and_all_measures_last(judged):
    assert headings(judged[2]) == SECTIONS
    assert Page(judged[2]).text.index("spams are caught") < judged[2].index("In a week")
    trial, _, html = judged
    assert "".join(Page(html).within("pre")) == trial_text(trial).rstrip("\n") + "\n"
    (kept, lost), (missed, caught) = evaluation_of(trial).confusion.tolist()
    text = Page(html).text

    assert f"{rate(100 * caught / (caught + missed))} of 100 spams are caught" in text
    assert f"{rate(1000 * lost / (kept + lost))} of 1,000 hams are lost" in text
    assert f"{missed} of {caught + missed} came through" in text
    assert f"{lost} of {kept + lost} wanted messages were called spam" in text
    for part, whole, scale in ((caught, caught + missed, 100), (lost, lost + kept, 1000)):
        low, high = wilson_interval(np.array([part]), np.array([whole]))
        between = f"between {rate(scale * float(low[0]))} and {rate(scale * float(high[0]))} of"
        assert between in text


def test_a_week_has_the_mixture_of_what_was_judged_and_a_rare_loss_is_told_in_weeks():
    # 300 of 200 ham and 100 spam; 2 hams lost of 200 are 2 of 300, 10 spams missed of 100 are 10.
    week = pages.week_of(np.array([[198, 2], [10, 90]]), 300)
    assert week == (300, 200, 100, 2.0, 10.0, 0.0, 12.0)
    assert pages.week_of(np.array([[9, 1], [1, 9]]), 7)[:3] == (7, 4, 3)
    assert pages.week_of(np.array([[198, 2, 0], [10, 80, 10]]), 30).unsure == pytest.approx(1.0)

    y = np.repeat([0, 1], [1000, 500])
    score = np.where(y == 1, 5.0, -5.0)
    score[0] = 5
    text = bare(trial_of(y, score), per_week=150)[1].text
    assert "about 0.1 ham would be lost" in text
    assert "One ham would be lost in 10 weeks." in text
    assert "weeks" not in bare(trial_of(y, score))[1].text
    assert "weeks" not in bare(trial_of(y, score), per_week=1100)[1].text  # 0.73 in one


def test_each_cutoff_costs_what_its_errors_cost(judged):
    trial, _, html = judged
    head, *rows = rows_of(html, "Cutoffs")
    assert head == ["cutoff", "ham lostof 1,000", "spam missedof 100", "cost"]
    n_ham, n_spam = np.bincount(trial.y).tolist()
    for named, lost, missed, cost in rows:
        value = trial.rule.spam if named == "0.667" else float(named)
        found = trade_off(trial.score, trial.y, trial.rule._replace(spam=value, ham=value))
        assert lost == rate(1000 * found.false_positives / n_ham)
        assert missed == rate(100 * found.false_negatives / n_spam)
        assert float(cost) == 2 * found.false_positives + found.false_negatives
    assert [row[0] for row in rows] == sorted({row[0] for row in rows}, key=float)
    assert len(rows) > 3
    (now,) = re.findall(r'<tr class="now"><th class="n">(.*?)</th>', html)
    assert now == "0.667"


def test_mistakes_are_the_most_surely_wrong_first_and_their_numbers_add_up(judged):
    trial, witness, html = judged
    mistakes = trial.mistakes()
    page = Page(html)
    names = [text for path, text in page.texts if path[-2:] == ("summary", "span")]
    assert names == [name for *_, name in mistakes[: pages.N_CASES]]
    for answer, truth, probability, _ in mistakes[: pages.N_CASES]:
        said = f"{truth} called {answer}, probability {float(probability):.4f}"
        assert said in page.text
    rest = rows_of(html, "Further wrong answers")[1:]
    assert rest == [[*each] for each in mistakes[pages.N_CASES :]]

    rows = trial.wrong_rows()[: pages.N_CASES]
    regions = re.findall(r'aria-label="Evidence">(.*?)</table>', html, re.S)
    assert len(regions) == pages.N_CASES
    for region, expected in zip(regions, trial.score[rows].tolist(), strict=True):
        numbers = re.findall(r'<td class="n[^"]*">([^<]*)</td>', region)
        *parts, score = (float(each.replace("\N{MINUS SIGN}", "-")) for each in numbers)
        assert sum(parts) == pytest.approx(score, abs=1e-9)
        assert score == pytest.approx(expected, abs=0.0051)
    assert set(rows.tolist()) <= witness.reasons.keys()


@pytest.mark.parametrize(("y", "named", "missing"), [(0, "hams", "spam"), (1, "spams", "ham")])
def test_where_a_class_is_missing_nothing_is_said_of_it(y, named, missing):
    _, page = bare(trial_of([y] * 30, [-1.0, 1.0] * 15))
    assert f"There was no {missing} among these messages" in page.text
    assert f"{named} are" in page.text
    assert "Both errors at every cutoff" not in page.text


def test_fewer_than_ten_are_not_of_a_hundred():
    _, page = bare(trial_of([0] * 8 + [1] * 5, [-1.0] * 8 + [-1.0] * 3 + [1.0] * 2))
    assert "2 of 5 spams are caught" in page.text
    assert "0 of 8 hams are lost" in page.text
    assert "between 0.59 and 3.8 of 5" in page.text  # Wilson: .118 to .769


def test_pages_of_no_errors_of_a_single_message_and_of_ten_thousand():
    html, page = bare(trial_of([0, 1] * 50, [-3.0, 3.0] * 50))
    assert "Nothing: no answer was wrong." in page.text
    assert '<path class="bad"' not in html
    assert "100 of 100 spams are caught" in page.text
    assert "0 of 1,000 hams are lost" in page.text
    for score in (-2.0, 2.0):
        assert "mails: 1 message." in bare(trial_of([1], [score]), what="mails")[1].text
    long = tuple(f"{'folder/' * 20}{n}.eml" for n in range(10_000))
    trial = replace(random_trial(2, n_docs=10_000), names=long)
    assert len(pages.quality_page(trial, Witness(), per_week=1).encode()) < 1_000_000


def test_unsure_answers_are_counted_apart_and_other_rules_have_no_cutoffs():
    rule = cutoffs(10, unsure_cost=0.1)
    score = np.tile([-8.0, 0.0, 8.0], 20)
    html, page = bare(trial_of([0, 1] * 30, score, rule=rule))
    assert "unsure ones are counted neither way" in page.text
    assert "of 333.3 it would be unsure" in page.text
    assert "unsure as 0.1" in page.text
    (now,) = [row for row in rows_of(html, "Cutoffs") if row[0] == "0.99"]
    assert now[3] == "20"
    sure = trial_of([0, 1] * 30, np.tile([-8.0, 5.0], 30), rule=rule)
    rows = {row[0]: row for row in rows_of(bare(sure)[0], "Cutoffs")}
    assert (rows["0.99"][3], rows["0.995"][3]) == ("0", "30")
    trials = sure, trial_of(sure.y, score, rule=rule)
    html = pages.compared_page(Compared((compare(*trials),), trials), ["", ""])
    assert ["unsure, of 100", "0", "33.3"] in rows_of(html, "Side by side")
    other = LossMatrix(("ham", "spam"), np.array([[0.0, 3.0], [1.0, 0.0]]))
    html, _ = bare(replace(random_trial(0), rule=other))
    assert "What other cutoffs would cost" not in headings(html)


def test_many_mistakes_are_listed_and_the_rest_counted():
    trial = random_trial(1, n_docs=3000)
    n_wrong = len(trial.wrong_rows())
    assert n_wrong > pages.N_CASES + pages.N_LISTED
    html, page = bare(trial)
    assert len(rows_of(html, "Further wrong answers")) == 1 + pages.N_LISTED
    assert f"and {n_wrong - pages.N_CASES - pages.N_LISTED:,} more" in page.text
    assert "Its evidence was not kept." in page.text


def test_many_classes_have_a_matrix_and_a_line_each():
    rng = np.random.default_rng(0)
    classes = tuple(f"c{k}" for k in range(6))
    y = rng.integers(0, 5, 300)  # none of the last
    joint = rng.normal(0, 1, (300, 6))
    joint[np.arange(300), y] += 1.5
    trial = trial_of_classes(classes, y, joint)
    html, page = bare(trial)
    confusion = evaluation_of(trial).confusion

    rows = rows_of(html, "Confusion matrix")[1:]
    assert [[int(cell or 0) for cell in row[1:]] for row in rows] == confusion.tolist()
    classes_found = {row[0]: row for row in rows_of(html, "Classes")[1:]}
    assert "c5" not in classes_found
    for k, name in enumerate(classes[:5]):
        found = 100 * confusion[k, k] / confusion[k].sum()
        assert classes_found[name][2].startswith(f"{rate(float(found))} (")
    counts = [int(row[0].replace(",", "")) for row in rows_of(html, "Confusions")[1:]]
    assert counts == sorted((confusion - np.diag(np.diag(confusion))).ravel(), reverse=True)[:20]
    assert "How good is this classifier?" in page.text


def test_a_stream_says_its_order_and_has_a_learning_curve(mails):
    witness = Witness()
    items = witness.watched([*read_items([str(mails)])][::3])
    trial = judge_online(items, PRESETS["mail"], "everything", witness=witness)
    html = pages.quality_page(trial, witness)
    assert "Would more messages help?" in headings(html)
    assert "judged and then learned in the order of the numbers" in Page(html).text
    assert witness.words.keys() == {"ham", "spam"}
    assert 'aria-label="Evidence"' in html


@pytest.mark.parametrize(("known", "said"), [
    (None, ""),  # the model cannot say
    ([False, False, False, False], "each answered by a model that had not learned it"),
    ([True, True, False, True], "learned 3 of these 4 messages, so the numbers are better"),
    ([True, True, False, True], "it is right about 100 of 100 others"),
])  # fmt: skip
def test_a_page_on_messages_that_the_model_had_learned_says_so(known, said):
    trial = trial_of([0, 1, 1, 0], [-4.0, 4.0, 4.0, 4.0])
    _, page = bare(replace(trial, is_known=known and np.array(known)))
    assert said in page.text
    assert ("had not learned" in page.text) == (known is not None and not any(known))


def test_texts_and_rows_have_pages():
    witness = Witness()
    items = [*texts(30, 1), Item("odd", "sky", b"ship sail harbour wave tide", is_text=True)]
    trial = judge_folds(witness.watched(items), PRESETS["text"], 3, 0, witness=witness)
    page = Page(pages.quality_page(trial, witness))
    assert "of 100 sky are recognised" in page.text
    assert "sea called sky" in page.text or "sky called sea" in page.text
    assert re.search(r"Text: ship\S* sail\S* harbour", page.text)
    assert "as the model counts it" in page.text  # which may be less than once

    settings, witness = TableSettings("好瓜"), Witness()
    table = read_table(read_records([str(MELONS)]), settings).table
    trial = table_trial(table, settings, 4, 0, witness=witness)
    html = pages.quality_page(trial, witness)
    assert "The strongest values of each class" in headings(html)
    assert "纹理=清晰" in Page(html).text
    assert html.count('aria-label="Evidence"') == len(trial.wrong_rows())
    assert "underlined" not in Page(html).text  # no row shows a text


@pytest.mark.parametrize(("noun", "others"), [("messages", 1), ("rows", 1), ("messages", 0)])
def test_labels_of_rows_and_of_a_single_class_are_not_doubted(noun, others):
    witness, score = Witness(), [-9, 9 if others else -9] * 20 + [9]
    trial = trial_of([0, others] * 20 + [0], score, noun=noun)
    witness.hear_one(40, 0, trial.joint[40], lambda *_: ((), ()))
    page = Page(pages.quality_page(trial, witness))
    assert ("Filed wrongly?" in page.text) == (noun == "messages" and others == 1)


# --- the result of a cross-validation makes it -----------------------------------------------


def test_it_has_all_measures_of_the_trial_and_makes_a_page(mails):
    few = [item._replace(data=item.read()) for item in read_items([str(mails)])][::5]
    result = nbspam.cross_validate(few, cv=3)
    expected = evaluation_of(judge_folds(few, PRESETS["mail"], 3, 0))
    for name in ("scores", "accuracy", "auc", "n_docs"):
        assert getattr(result, name) == getattr(expected, name)
    page = Page(result.report(per_week=70))
    assert "Of 70 messages a week" in page.text
    assert f"{result.errors} of {result.n_docs}, the most confident first" in page.text
    assert "In a thousand messages" in result.report()
    with pytest.raises(UsageError, match="per_week: 0 is not a whole number from 1 to 1,0"):
        result.report(per_week=0)
    assert "which cross_validate(…, curve=True) does" in page.text

    curve = nbspam.cross_validate(few, cv=2, curve=True)
    assert "The share of wrong answers by the number of messages learned" in curve.report()
    texts = ["what does it cost", "it does not start"] * 5
    pairs = [(f"{text}: {n}", ("sales", "help")[n % 2]) for n, text in enumerate(texts)]
    html = nbspam.cross_validate([*pairs, ("it does not start, either", "sales")], cv=2).report()
    assert "either" in Page(html).text


def own_rule(trial):
    return trial.rule


@pytest.fixture(scope="module")
def compared(mails):
    choices = SettingsChoices(), SettingsChoices(model="multinomial"), SettingsChoices(pairs=True)
    return compare_items(read_items([str(mails)]), choices, 3, 0, own_rule)


@pytest.fixture(scope="module")
def html(compared):
    names = ["the defaults", "--model multinomial", "--pairs"]
    return pages.compared_page(compared, names, "mails", per_week=200)


def test_every_run_has_a_column_and_what_only_some_get_right_is_listed(compared, html):
    head, *rows = rows_of(html, "Side by side")
    found = {row[0]: row[1:] for row in rows}
    confusions = [evaluation_of(trial).confusion for trial in compared.trials]
    assert head == ["", "A", "B", "C"]
    for cell, confusion in zip(found["spams caught, of 100"], confusions, strict=True):
        assert cell.startswith(f"{rate(100 * (1 - error_rates(confusion)[1]))}(")
    for cell, confusion in zip(found["hams lost, of 1,000"], confusions, strict=True):
        assert cell.startswith(f"{rate(1000 * error_rates(confusion)[0])}(")
    weekly = found["of 200 messages a week: ham lost"]
    assert weekly == [rate(200 * c[0, 1] / c.sum()) for c in confusions]
    names = compared_names(compared.trials[0].classes, compared.trials[0].noun)
    for letter, comparison in zip("BC", compared.comparisons, strict=True):
        _, *rows = rows_of(html, f"{letter} against A")
        expected = [
            [names.get(d.name, d.name), *map(short, d[1:3]), *map(str, d[3:])]
            for d in comparison.differences
        ]
        assert rows == expected
    right = [trial.answers()[0] == trial.y for trial in compared.trials]
    rows = rows_of(html, "Where they differ")[1:]
    names = [
        name for name, *r in zip(compared.trials[0].names, *right, strict=True) if len(set(r)) > 1
    ]
    assert [row[-1] for row in rows] == names[:100]


def test_a_difference_counts_only_if_chance_seldom_makes_it(html, compared):
    text = Page(html).text
    for comparison in compared.comparisons:
        alone = amount_text(comparison.only_first_right, "messages")
        assert f"Only A is right about {alone}, only" in text
    is_real = [each.p_value < 0.05 for each in compared.comparisons]
    assert text.count("the difference is hardly chance") == sum(is_real)
    assert text.count("do not show which is better") == len(is_real) - sum(is_real)
    equal = replace(compared.comparisons[0], only_first_right=0, only_second_right=0, p_value=1.0)
    same = compared._replace(comparisons=(equal,), trials=compared.trials[:2])
    text = Page(pages.compared_page(same, ["", ""])).text
    assert "Both are right about the same messages." in text
    assert "Only A" not in text
    many = compared._replace(comparisons=(equal,) * 26, trials=compared.trials[:1] * 27)
    assert "A1 against A" in headings(pages.compared_page(many, [""] * 27))


def test_texts_of_other_classes_compare_too():
    choices = [SettingsChoices(), SettingsChoices(alpha=1.0)]
    compared = compare_items(texts(20, 0), choices, 4, 0, own_rule)
    page = Page(pages.compared_page(compared, ["the defaults", "--alpha 1"]))
    assert "sky recognised, of 100" in page.text
    assert "sea called sky" in page.text
    assert page.tags.count("svg") == 5


EVIL = '<script>document.title="run"</script><img src=x onerror=alert(1)>'
OVERRIDE = "\u202egnp.exe\u2066"
HOSTILE = (
    f'Subject: {EVIL} </title></style>\r\nFrom: "{EVIL}" <a@b.example>\r\n\r\n'
    f"</p></details>{EVIL}{OVERRIDE} &amp; {{{{ 7*7 }}}} {{% raw %}}"
    " <style>p{color:red}</style>\n"
).encode()


@pytest.fixture(scope="module")
def hostile():
    """A report on mail whose names, classes and texts all try to be markup."""
    items = [
        Item(f"{name}{number}{EVIL}{OVERRIDE}", name, HOSTILE + b"word%d cheap" % (number % 3))
        for name in (f"ham{EVIL}", f"spam{OVERRIDE}")
        for number in range(10)
    ]
    witness = Witness()
    trial = judge_folds(witness.watched(items), PRESETS["mail"], 2, 0, witness=witness)
    return pages.quality_page(trial, witness, f"folder {EVIL}{OVERRIDE}")


def test_markup_of_strangers_and_overrides_of_direction_stay_text(hostile, mail_classifier):
    page = Page(hostile)
    assert not {"script", "img", "iframe", "link", "form", "a"} & set(page.tags)
    assert page.tags.count("style") == page.tags.count("title") == 1
    assert EVIL in page.text
    assert "{{ 7*7 }}" in page.text
    attributes = [name for _, values in page.attributes for name in values]
    assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\0-\x08\x0b-\x1f]", hostile)
    assert "\\u202egnp.exe\\u2066" in Page(hostile).text

    page = pages.Explained(mail_classifier)
    items = page.watched([Item(f"a{EVIL}", None, HOSTILE)])
    assert len([*page.passing(mail_classifier.explanations(items))]) == 1
    parsed = Page(page.page())
    assert not {"script", "img"} & set(parsed.tags)
    assert "<script>" in parsed.text


def test_the_policy_allows_one_style_and_nothing_else(hostile):
    (policy,) = [
        values["content"]
        for tag, values in Page(hostile).attributes
        if tag == "meta" and values.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", hostile, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert hostile.index("Content-Security-Policy") < hostile.index("<style>")
    assert not re.search(r"url\(|@import|expression", style)
    loading = {"src", "href", "srcset", "data", "action", "poster", "background"}
    assert not [values for _, values in Page(hostile).attributes if loading & values.keys()]


def test_numbers_and_texts_are_shown():
    found = [nats(value) for value in (1.234, -0.5, float("inf"), float("nan"), 1e12)]
    assert found == ["+1.23", "−0.50", "+∞", "?", "+1.00e+12"]
    assert [cutoff(p) for p in (0.5, 2 / 3, 0.995, 0.9999)] == ["0.5", "0.667", "0.995", "0.9999"]
    # Only unprintable characters are escaped.
    assert shown("Grüße\tan 发票\n\x1b[31m\u202e") == "Grüße    an 发票\n\\x1b[31m\\u202e"
