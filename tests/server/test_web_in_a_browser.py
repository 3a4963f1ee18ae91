"""The page in a real browser: logging in and out by clicks, its style, its look."""

import shutil

import pytest

from browser import PHONE, SCREEN, complaints, overflow, visited
from serving import check, free_port, serving
from support import SPAM

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory, served_model):
    """The address that logs in to the page of a server that has judged something."""
    folder = tmp_path_factory.mktemp("site")
    model = shutil.copy(served_model, folder / "m.nbspam")
    with serving(model, folder, "--web", str(free_port()), "--jobs", "1") as server:
        server.ask(check(SPAM))
        server.ask(b"never a request\r\n")
        yield server.errors.read_text().splitlines()[0]


def home_of(site):
    return site.partition("?")[0]


def test_the_address_in_the_first_line_logs_in_and_hides_the_token(browser, site):
    with visited(browser, site) as (page, heard):
        assert page.url == home_of(site)
        assert page.locator("h1").inner_text() == "What the server has done"
        assert "not in the words of its protocol" in page.inner_text("main")
        assert set(heard) <= {site, home_of(site)}
        assert page.evaluate("document.cookie") == ""


def test_a_person_logs_in_and_out_by_hand(browser, site):
    with visited(browser, home_of(site)) as (page, _):
        page.get_by_label("Token").fill("a guess")
        page.keyboard.press("Enter")
        assert "not the token" in page.get_by_role("alert").inner_text()
        page.get_by_label("Token").fill(site.partition("token=")[2])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(home_of(site))
        assert page.locator("h1").inner_text() == "What the server has done"
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        page.goto(home_of(site))
        assert page.locator("h1").inner_text() == "nbspam"


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("dark", [False, True])
def test_both_pages_have_their_style_and_fit(browser, site, width, dark):
    for url in (home_of(site), site):
        with visited(browser, url, width, dark) as (page, _):
            assert overflow(page) <= 0
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert colour == ("rgb(21, 24, 27)" if dark else "rgb(255, 255, 255)")
            assert page.locator("button").bounding_box()["height"] >= 24  # pixels, to be hit


def test_axe_finds_nothing(browser, site):
    for url in (home_of(site), site):
        for dark in (False, True):
            with visited(browser, url, dark=dark) as (page, _):
                assert complaints(page) == []


def test_a_page_of_another_origin_can_neither_read_nor_post(browser, site, tmp_path):
    # The attacker's page is a file, whose origin is `null`; the browser has our session.
    home = home_of(site)
    context = browser.new_context()
    page = context.new_page()
    page.goto(site)
    attack = tmp_path / "attack.html"
    attack.write_text(
        f'<title>quiet</title><iframe src="{home}"></iframe>'
        f'<script src="{home}" onload="document.title = 1"></script>'
        f'<form method="post" action="{home}logout"><button>Win a prize</button></form>'
    )
    page.goto(attack.as_uri())
    read = "url => fetch(url, {credentials: 'include'}).then(() => 'read', () => 'refused')"
    assert page.evaluate(read, home) == "refused"
    assert page.title() == "quiet"
    assert "What the server has done" not in page.frames[1].content()
    page.get_by_role("button").click()
    page.wait_for_url(f"{home}logout")
    assert page.inner_text("body").strip() == "Origin is another site"
    page.goto(home)
    assert page.locator("h1").inner_text() == "What the server has done"  # still logged in
    context.close()
