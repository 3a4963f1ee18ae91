"""How the model is doing, and doubtful messages, in a real browser."""

import os
import time

import pytest

from browser import PHONE, SCREEN, complaints, overflow, visited
from mailboxes import put
from nbspam.settings import Choices, chosen
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel, told_at
from serving import free_port, serving
from support import HAM, SPAM

pytestmark = pytest.mark.slow
N_OF_CLASS, N_NEW = 40, 10
HOSTILE = b'Subject: "><script>document.title = "run"</script>\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address that logs in to a page, and its model, which was told a wrong label."""
    folder = tmp_path_factory.mktemp("course")
    items = []
    for number in range(2 * N_OF_CLASS + N_NEW):
        data, label = (SPAM, "spam") if number % 2 else (HAM, "ham")
        if number == 1:
            data, label = HOSTILE + SPAM.replace(b"Subject: cheap pills\n", b""), "ham"
        path = put(folder / "box", number, data + b"%d\n" % number)
        when = time.time() - 3600 * number
        os.utime(path, (when, when))
        if number < 2 * N_OF_CLASS:
            items.append(Item("-", label, path.read_bytes(), told=True))
    path = str(folder / "m.nbspam")
    model = StoredModel(path, new=chosen(Choices(), is_text=False))
    model.learn(items, day=1, classes=["ham", "spam"])
    options = ("--web", str(free_port()), "--jobs", "2", "--review", str(folder / "box"))
    with serving(path, folder, *options) as server:
        yield server.errors.read_text().splitlines()[0], path


def found(page, site):
    """Go to the doubtful messages, and wait until they are found."""
    page.goto(site.partition("?")[0] + "doubtful")
    for _ in range(200):
        if page.get_by_role("status").count() == 0:
            return page.locator("ol.mail > li")
        page.wait_for_timeout(100)
        page.get_by_role("link", name="Show what is there").click()
    raise AssertionError(page.inner_text("main"))


def test_a_label_that_is_wrong_is_found_and_mended_by_a_click(browser, site, tmp_path):
    url, model = site
    with visited(browser, url) as (page, heard):
        rows = found(page, url)
        assert rows.count() == 1
        assert rows.first.locator(".subject").inner_text().startswith('"><script>')
        assert page.title() == "nbspam: doubtful messages"
        assert complaints(page) == []
        page.set_viewport_size({"width": PHONE, "height": 800})
        page.emulate_media(color_scheme="dark")
        assert overflow(page) <= 0
        assert complaints(page) == []
        before = told_at(model)
        with page.expect_navigation():
            page.keyboard.press("s")  # the first one has the focus
        assert rows.count() == 0
        after = told_at(model)
        changed = [after[digest] for digest in before if before[digest] != after[digest]]
        assert changed == ["spam"]
        home = url.partition("?")[0]
        assert all(each.startswith(home) for each in heard), heard


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("dark", [False, True])
def test_the_course_fits_and_axe_finds_nothing(browser, site, width, dark):
    url, _ = site
    with visited(browser, url, width, dark) as (page, heard):
        page.get_by_role("button", name="Ham").first.click()
        page.get_by_role("link", name="Over time").click()
        page.locator("svg").first.wait_for()
        assert page.locator("svg").count() == 3
        for each in page.locator("summary").all():
            each.click()
        assert overflow(page) <= 0
        assert complaints(page) == []
        home = url.partition("?")[0]
        assert all(each.startswith(home) for each in heard), heard
