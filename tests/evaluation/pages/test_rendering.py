"""A page loads nothing, and what strangers wrote is text in it."""

import base64
import hashlib
import re

import pytest

from markup import Page
from nbspam.errors import InputError, UsageError
from nbspam.evaluation.judging import judge_folds
from nbspam.evaluation.pages.quality import Explained, quality_page
from nbspam.evaluation.pages.rendering import check_page_path, cutoff, nats, shown, write_report
from nbspam.evaluation.witness import Witness
from nbspam.settings import PRESETS
from nbspam.sources.items import Item

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
    return quality_page(trial, witness, f"folder {EVIL}{OVERRIDE}")


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

    page = Explained(mail_classifier)
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


def test_names_and_places_are_checked(tmp_path):
    for name in ("page.pdf", "-", "page"):
        with pytest.raises(UsageError, match=r"ends in \.html"):
            check_page_path(name)
    check_page_path("Page.HTML")
    with pytest.raises(InputError, match="--report"):
        write_report(str(tmp_path / "no" / "page.html"), "")
    write_report(str(tmp_path / "page.html"), "lone \udcff")
    assert (tmp_path / "page.html").read_text() == "lone \\udcff"
