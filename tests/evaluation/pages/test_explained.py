"""The page of explanations shows the first messages, and counts the others."""

from markup import Page
from nbspam.evaluation.pages.quality import N_SHOWN, Explained
from nbspam.sources.items import Item, read_items
from nbspam.sources.records import read_records
from nbspam.tables.training import TableSettings, read_table, train_table
from support import ROOT, SPAM


def explained(classifier, inputs):
    """Return the page of inputs, and the explanations that passed."""
    page = Explained(classifier)
    found = [*page.passing(classifier.explanations(page.watched(inputs)))]
    return page.page(), found


def test_each_message_has_its_verdict_text_and_evidence(mails, mail_classifier):
    items = [*read_items([str(mails / "spam")])][:3]
    html, found = explained(mail_classifier, items)
    text = Page(html).text
    for item, each in zip(items, found, strict=True):
        assert item.name in text
        assert f"{each.verdict.label}, probability {each.verdict.probability:.4f}" in text
        for row in each.strongest(8):
            assert row.token in text
    assert html.count('aria-label="Evidence"') == 3
    assert "spoke for spam" in text


def test_a_page_has_so_many_and_counts_the_rest(mail_classifier):
    items = [Item(f"m{n}", None, SPAM) for n in range(N_SHOWN + 5)]
    html, found = explained(mail_classifier, items)
    assert len(found) == N_SHOWN + 5
    assert html.count("<details") == N_SHOWN
    assert "and 5 more" in Page(html).text
    assert "could be read" in Page(explained(mail_classifier, [])[0]).text


def test_rows_have_their_values(tmp_path):
    path = str(ROOT / "corpora" / "watermelon-3.0.csv")
    settings = TableSettings("好瓜")
    classifier = train_table(read_table(read_records([path]), settings).table, settings)
    html, found = explained(classifier, read_records([path]))
    assert html.count('aria-label="Evidence"') == len(found) == 17
    assert "纹理=清晰" in Page(html).text
    assert "words of the text" not in html
