"""The page's mail in a real browser: keys, clicks, undo, hostile mail, a thousand messages."""

import shutil

import pytest

from browser import PHONE, SCREEN, complaints, overflow, visited
from mailboxes import key_of, put, written
from nbspam.store.model import told_at
from serving import free_port, serving

pytestmark = pytest.mark.slow
N_MESSAGES = 1000
HOSTILE = '"><script>document.title = "run"</script><img src=x onerror=alert(1)>\u202eexe'


@pytest.fixture(scope="module")
def site(tmp_path_factory, served_model):
    """The address that logs in to a page with a thousand messages, and the model's path."""
    folder = tmp_path_factory.mktemp("review")
    model = shutil.copy(served_model, folder / "m.nbspam")
    for number in range(N_MESSAGES):
        put(folder / "box", number, written(number, f"zebra{number} in the meadow"))
    put(folder / "box", N_MESSAGES, f"Subject: {HOSTILE}\nFrom: {HOSTILE}\n\n{HOSTILE}".encode())
    options = ("--web", str(free_port()), "--jobs", "1", "--review", str(folder / "box"))
    with serving(model, folder, *options) as server:
        url = server.errors.read_text().splitlines()[0]
        yield url, str(model)


def rows(page):
    return page.locator("ol.mail > li")


def top_of(row):
    """Return how far below the top of the window a message begins, pixels."""
    return row.evaluate("each => each.getBoundingClientRect().top")


def focused(page):
    """Return the subject of the message that has the focus."""
    return page.locator("li:focus .subject").inner_text()


def pressed(page, key):
    with page.expect_navigation():
        page.keyboard.press(key)


def test_keys_move_teach_and_undo(browser, site):
    url, model = site
    with visited(browser, url) as (page, _):
        page.keyboard.press("ArrowDown")
        assert focused(page) == "number 999"
        pressed(page, "s")
        assert focused(page) == "number 998"  # the next one
        assert page.get_by_role("status").inner_text().startswith("Learned as spam: number 999")
        assert list(told_at(model).values()) == ["spam"]
        pressed(page, "h")
        assert sorted(told_at(model).values()) == ["ham", "spam"]
        page.keyboard.press("ArrowUp")
        assert focused(page) == "number 998"
        pressed(page, "u")
        pressed(page, "u")
        assert told_at(model) == {}
        assert page.get_by_role("status").count() == 0
        assert focused(page) == "number 999"
        pressed(page, "Enter")
        assert page.locator("h1").inner_text() == "number 999"
        pressed(page, "h")
        assert "you said ham" in page.inner_text("main")
        pressed(page, "u")
        assert told_at(model) == {}


def test_keys_are_letters_where_one_writes_and_the_browsers_with_control(browser, site):
    url, model = site
    with visited(browser, url) as (page, _):
        page.keyboard.press("Control+s")
        page.get_by_label("Sender or subject").press_sequentially("number 7 sh")
        assert page.get_by_label("Sender or subject").input_value() == "number 7 sh"
        assert told_at(model) == {}


@pytest.mark.parametrize("has_scripts", [True, False])
def test_clicks_teach_and_undo_with_scripts_and_without(browser, site, has_scripts):
    url, model = site
    context = browser.new_context(java_script_enabled=has_scripts)
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Sender or subject").fill("42@a number")
    page.get_by_label("Order").select_option("unsure")
    page.get_by_role("button", name="Show").click()
    row = rows(page).filter(has_text="number 42")
    row.first.get_by_role("button", name="Spam").click()
    page.get_by_text("you said spam").wait_for()
    assert "words=42%40a+number&order=unsure" in page.url
    assert list(told_at(model).values()) == ["spam"]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    page.get_by_text("you said").wait_for(state="detached")
    assert told_at(model) == {}
    context.close()


def test_hostile_mail_is_text_and_runs_nothing(browser, site):
    url, _ = site
    with visited(browser, url) as (page, heard):
        assert rows(page).first.locator(".subject").inner_text().startswith('"><script>')
        assert page.title() == "nbspam: mail"
        rows(page).first.locator(".subject a").click()
        page.locator("h1").wait_for()
        assert page.title().startswith('"><script>')
        assert "\u202e" not in page.content()
        assert page.locator("img").count() == 0
        home = url.partition("?")[0]
        assert all(each.startswith(home) for each in heard), heard
    # If a mistake in escaping let mail's markup in, the policy would still not run it.
    with visited(browser, url) as (page, heard):
        page.evaluate(
            "text => document.querySelector('main').innerHTML = `<img src=x onerror='${text}'>`",
            'document.title = "run"',
        )
        page.wait_for_timeout(200)
        assert page.title() == "nbspam: mail"
        assert any("Content Security Policy" in each for each in heard)


def test_a_thousand_messages_scroll(browser, site):
    url, _ = site
    with visited(browser, url) as (page, _):
        for _ in range(60):  # the others get their verdicts meanwhile
            if rows(page).count() == N_MESSAGES:
                break
            page.wait_for_timeout(500)
            page.reload()
        assert rows(page).count() == N_MESSAGES
        assert top_of(rows(page).last) > 10_000
        page.mouse.move(400, 400)
        page.mouse.wheel(0, 10_000_000)
        for _ in range(100):
            if top_of(rows(page).last) < 800:
                break
            page.wait_for_timeout(50)
        assert 0 < top_of(rows(page).last) < 800
        rows(page).last.get_by_role("button", name="Ham").focus()
        page.keyboard.press("ArrowUp")
        assert 0 < top_of(page.locator("li:focus")) < 800
        page.get_by_role("link", name="More").click()
        page.wait_for_url("**start=1000")
        assert rows(page).count() == 1


@pytest.mark.parametrize("path", ["", f"message?key={key_of(5)}", "?words=nothing"])
def test_pages_fit_a_phone_in_the_dark_and_axe_finds_nothing(browser, site, path):
    url, _ = site
    with visited(browser, url) as (page, _):
        for width, scheme in ((PHONE, "dark"), (SCREEN, "light")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            page.goto(url.partition("?")[0] + path)
            assert overflow(page) <= 0
            colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert colour == ("rgb(21, 24, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
            if width == PHONE or path:  # axe takes seconds for a thousand messages
                page.evaluate(
                    "document.querySelectorAll('ol.mail > li:nth-child(n+20)')"
                    ".forEach(each => each.remove())"
                )
                assert complaints(page) == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_keys_are_named_only_where_they_work(browser, site, has_scripts):
    context = browser.new_context(java_script_enabled=has_scripts)
    page = context.new_page()
    page.goto(site[0])
    assert page.locator(".keys").is_visible() == has_scripts
    context.close()
