"""The site's list of users in a real browser: a click on a user logs in as that user."""

import re
import shutil

import pytest

from browser import PHONE, complaints, overflow, visited
from mailboxes import key_of, put, written
from nbspam.server.users import folder_name
from nbspam.store.model import told_at
from serving import free_port, serving

pytestmark = pytest.mark.slow
HOSTILE = '"><script>document.title = 1</script> \u202e' + "x" * 60


@pytest.fixture(scope="module")
def site(tmp_path_factory, served_model):
    """The address that logs in as the site, and the folder of the server."""
    folder = tmp_path_factory.mktemp("site")
    model = shutil.copy(served_model, folder / "m.nbspam")
    put(folder / "boxes" / "ann", 1, written(1, "lunch with ann"))
    put(folder / "boxes" / "bob", 2, written(2, "lunch with bob"))
    put(folder / "boxes" / folder_name(HOSTILE), 3)
    (folder / "users" / "eve").mkdir(parents=True)
    (folder / "users" / "eve" / "model").touch()
    options = ("--users", folder / "users", "--review", folder / "boxes", "--jobs", "1")
    with serving(model, folder, "--web", str(free_port()), *options) as server:
        yield server.errors.read_text().splitlines()[0], folder


def test_a_click_on_a_user_logs_in_as_that_user_who_teaches_their_own_model(browser, site):
    url, folder = site
    home = url.partition("?")[0]
    with visited(browser, url, PHONE, dark=True) as (page, heard):
        assert page.locator("h1").inner_text() == "Users"
        assert page.locator("tbody th").all_inner_texts()[1:] == ["ann", "bob", "eve"]
        assert page.title() == "nbspam: users"
        assert "\u202e" not in page.content()
        assert overflow(page) <= 0
        assert complaints(page) == []

        page.get_by_role("link", name="ann", exact=True).click()
        page.get_by_text("Mail of ann").wait_for()
        assert page.url == home
        assert page.get_by_role("navigation", name="Pages").inner_text().split() == [
            "Mail", "Doubtful", "Over", "time",
        ]  # fmt: skip
        assert overflow(page) <= 0
        assert complaints(page) == []
        page.get_by_role("button", name="Spam").click()
        page.get_by_text("you said spam").wait_for()
        assert list(told_at(str(folder / "users" / "ann" / "model")).values()) == ["spam"]
        assert not (folder / "users" / "bob").exists()

        for address in ("server", f"message?key={key_of(2)}"):
            page.goto(home + address)
            assert "bob" not in page.inner_text("body")
        assert all(each.startswith(home) or "Failed to load" in each for each in heard), heard


def test_names_and_missing_mailboxes_are_shown_on_a_phone(browser, site):
    url, _ = site
    with visited(browser, url, PHONE) as (page, _):
        page.locator("tbody a").first.click()
        page.locator("ol.mail").wait_for()
        assert '"><script>' in page.inner_text("header")
        assert overflow(page) <= 0
        assert complaints(page) == []
    with visited(browser, url, PHONE) as (page, _):
        page.get_by_role("link", name="eve").click()
        page.get_by_text(re.compile("no mailbox of your name")).wait_for()
        assert complaints(page) == []
