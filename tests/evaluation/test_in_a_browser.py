"""Pages in a real browser: drawn without network, on a telephone, in the dark and on paper.

Each page is visited once for all that is looked at without touching it.
"""

import pytest

from browser import PHONE, SCREEN, complaints, opened, overflow
from nbspam.decision import cutoffs
from nbspam.evaluation.choosing import compare_items
from nbspam.evaluation.judging import judge_folds, table_trial
from nbspam.evaluation.pages import Explained, compared_page, quality_page
from nbspam.evaluation.witness import Witness
from nbspam.settings import MANY, PRESETS, SettingsChoices
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import read_records
from nbspam.tables.training import TableSettings, read_table
from support import MELONS

pytestmark = pytest.mark.slow
EVIL = '<script>document.title="run"</script><img src=x onerror="document.title=1">'
HOSTILE = f"Subject: {EVIL}\n\n</pre></div>{EVIL}\u202e{'x' * 5000}\n".encode()
NAMES = ["quality", "hostile", "table", "many", "compared", "explained"]


def quality(folder):
    witness = Witness()
    items = witness.watched(read_items([str(folder)]))
    trial = judge_folds(items, PRESETS["mail"], 2, 0, with_smaller=True, witness=witness)
    return quality_page(trial, witness, "mails " + "long/" * 50, per_week=300)


def hostile(_):
    witness = Witness()
    items = [Item(f"{n}{EVIL}", "ham" if n % 2 else "spam", HOSTILE) for n in range(12)]
    items += [Item("big", "spam", b"Subject: big\n\n" + b"a big one " * 1_000_000)]
    trial = judge_folds(witness.watched(items), PRESETS["mail"], 2, 0, witness=witness)
    return quality_page(trial, witness, EVIL)


def table(_):
    settings, witness = TableSettings("好瓜"), Witness()
    data = read_table(read_records([str(MELONS)]), settings)
    return quality_page(table_trial(data.table, settings, 3, 0, witness=witness), witness)


def many(folder):
    """Return the page of mail in as many classes as ten names have."""
    witness = Witness()
    items = [
        item._replace(
            label=f"class {number % 10} with {'a long name' if number % 10 else 'x' * 99}"
        )
        for number, item in enumerate(read_items([str(folder)]))
    ]
    trial = judge_folds(witness.watched(items), MANY["mail"], 2, 0, witness=witness)
    return quality_page(trial, witness, "many")


def compared(folder):
    choices = [SettingsChoices(), SettingsChoices(alpha=1.0), SettingsChoices(pairs=True)]
    rule = cutoffs()
    found = compare_items(read_items([str(folder)]), choices, 2, 0, lambda trial: rule)
    return compared_page(found, ["the defaults", "--alpha 1", "--pairs"], "mails")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, mails, mail_classifier):
    """The path of each page, by name."""
    folder = tmp_path_factory.mktemp("pages")
    few = folder / "mail"
    for name in ("ham", "spam"):
        (few / name).mkdir(parents=True)
        for path in sorted((mails / name).iterdir())[:40]:
            (few / name / path.name).write_bytes(path.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbspam.evaluation.pages.N_CASES", 6)  # axe takes its time for each word
        made = {each.__name__: each(few) for each in (quality, hostile, table, many, compared)}
    explained = Explained(mail_classifier)
    items = [Item(EVIL, None, HOSTILE), *read_items([str(few / "spam")])][:6]
    assert [*explained.passing(mail_classifier.explanations(explained.watched(items)))]
    made["explained"] = explained.page()
    for name, html in made.items():
        (folder / f"{name}.html").write_text(html)
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module", params=NAMES)
def shown(request, browser, pages):
    """A page as it is shown, what it asked for, and its address."""
    with opened(browser, pages[request.param]) as (page, heard):
        yield page, heard, pages[request.param].as_uri()


@pytest.fixture
def report(browser, pages):
    """The page of an evaluation, in the light and on a screen."""
    with opened(browser, pages["quality"]) as (page, _):
        yield page


def test_a_page_is_drawn_without_network_and_fits(shown):
    page, heard, address = shown
    widths = (
        "[...document.querySelectorAll('svg')].map(each => each.getBoundingClientRect().width)"
    )
    tables = "[...document.querySelectorAll('.wide:not(.inside)')]"
    for width in (PHONE, SCREEN):
        page.set_viewport_size({"width": width, "height": 800})
        assert overflow(page) <= 0
        assert all(each > 200 for each in page.evaluate(widths))
        assert not page.evaluate(f"{tables}.some(each => each.scrollWidth > each.clientWidth)")
    assert heard == [address]
    assert page.locator("h1").inner_text().endswith("?")


def test_axe_finds_nothing(shown):
    page, _, _ = shown
    assert complaints(page) == []


def test_the_dark_is_dark_and_its_letters_can_be_read_and_paper_is_white(report):
    brightness = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"
        ".reduce((sum, each) => sum + Number(each), 0)"
    )
    assert 740 <= report.evaluate(brightness) <= 765
    report.emulate_media(color_scheme="dark")
    assert 0 <= report.evaluate(brightness) <= 150
    assert complaints(report, "color-contrast") == []
    report.emulate_media(color_scheme="dark", media="print")
    assert 740 <= report.evaluate(brightness) <= 765


@pytest.mark.parametrize("name", ["hostile", "explained"])
def test_hostile_mail_runs_nothing_and_ten_megabytes_are_cut(browser, pages, name):
    assert pages[name].stat().st_size < 500_000
    assert "characters are not shown" in pages[name].read_text()
    with opened(browser, pages[name]) as (page, heard):
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.title() not in ("run", "1")
        assert page.locator("script, img").count() == 0
        assert "<script>" in page.locator("main").inner_text()
        assert heard == [pages[name].as_uri()]


def test_the_policy_stops_what_escaping_would_miss(browser, pages, tmp_path):
    broken = tmp_path / "broken.html"
    html = pages["quality"].read_text()
    broken.write_text(html.replace("<main>", f"<main>{EVIL}<style>h1{{color:red}}</style>", 1))
    colour = "getComputedStyle(document.querySelector('h1')).color"
    with opened(browser, broken) as (page, heard):
        assert page.title() not in ("run", "1")
        assert len([line for line in heard if "Content Security Policy" in line]) >= 3
        assert page.evaluate(colour) != "rgb(255, 0, 0)"


def test_a_mistake_opens_by_the_keyboard_and_all_are_on_paper(report):
    closed = "document.querySelectorAll('details:not([open])').length"
    height = (
        "[...document.querySelectorAll('details:not([open]) .inside')]"
        ".filter(each => each.checkVisibility()).length"
    )
    report.locator("details:not([open]) summary").first.focus()
    before = report.locator("details[open]").count()
    report.keyboard.press("Enter")
    assert report.locator("details[open]").count() == before + 1
    assert report.evaluate(height) == 0
    report.emulate_media(media="print")
    assert report.evaluate(closed) > 0
    assert report.evaluate(height) == report.evaluate(closed)


def test_a_matrix_of_thirty_classes_fits_on_paper(report):
    report.emulate_media(media="print")
    report.set_viewport_size({"width": 700, "height": 800})
    row = f"<tr>{'<th class=n>12</th>' * 31}</tr>"
    fill = "row => document.querySelector('main').innerHTML = `<table class=matrix>${row}</table>`"
    report.evaluate(fill, row)
    assert overflow(report) <= 0
