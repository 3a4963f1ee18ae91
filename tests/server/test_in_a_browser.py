"""The pages in a real browser: how each looks, keys and clicks, hostile mail, other origins."""

import os
import shutil
import time
from pathlib import Path

import pytest

from browser import PHONE, SCREEN, complaints, overflow, visited
from maildirs import key_of, put, written
from nbspam.server.judge import user_folder_name
from nbspam.server.page.pages import PAGE_SIZE
from nbspam.settings import PRESETS
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from protocols import check
from serving import PATIENCE, free_port, serving
from support import HAM, SPAM

pytestmark = pytest.mark.slow
N_MESSAGES = 250
N_OF_CLASS, N_NEW = 40, 10
SCRIPT = "<script>document.title = 'run'</script>"
HOSTILE = f'">{SCRIPT}<img src=x onerror=alert(1)>\u202eexe'
PRESSES = """keys => keys.forEach(key => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {bubbles: true, ...key})))"""
# Firefox drops the focus between both.
COMES_BACK = "document.activeElement.blur(); dispatchEvent(new Event('pageshow'))"
MARK_COLOUR = "name => getComputedStyle(document.querySelector(`mark.${name}`)).backgroundColor"
HOSTILE_NAME = f'">{SCRIPT} \u202e{"x" * 60}'


def site(folder, model, *options):
    """Run a server with a page; yield the address that logs in, its home, and the model."""
    options = ("--web", str(free_port()), "--jobs", "1", *options)
    # The browser keeps connections open, and is not waited for.
    with serving(model, folder, *options, limits={"parting_seconds": 0.1}) as server:
        server.ask(check(SPAM))
        server.ask(b"never a request\r\n")
        url = server.errors.read_text().splitlines()[0]
        yield url, url.partition("?")[0], str(model)


@pytest.fixture(scope="module")
def mailbox(tmp_path_factory, served_model):
    """A page with many messages; the newest is hostile, and one has words without end."""
    folder = tmp_path_factory.mktemp("mailbox")
    for number in range(N_MESSAGES):
        put(folder / "box", number, written(number, f"zebra{number} in the meadow"))
    endless = f"Subject: {'Donaudampf' * 13}\nFrom: {'z' * 60}@x.example\n\nlunch\n"
    put(folder / "box", N_MESSAGES - 3, endless.encode())
    put(folder / "box", N_MESSAGES, f"Subject: {HOSTILE}\nFrom: {HOSTILE}\n\n{HOSTILE}".encode())
    model = shutil.copy(served_model, folder / "m.nbspam")
    yield from site(folder, model, "--review", str(folder / "box"))


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A page of mail that taught its model, one message of it in the wrong class."""
    folder = tmp_path_factory.mktemp("taught")
    items = []
    for number in range(2 * N_OF_CLASS + N_NEW):
        data, label = (SPAM, "spam") if number % 2 else (HAM, "ham")
        if number == 1:
            head = f'Subject: ">{SCRIPT}\n'.encode()
            data, label = head + SPAM.replace(b"Subject: cheap pills\n", b""), "ham"
        path = put(folder / "box", number, data + b"%d\n" % number)
        when = time.time() - 3600 * number
        os.utime(path, (when, when))
        if number < 2 * N_OF_CLASS:
            items.append(Item("-", label, path.read_bytes(), told=True))
    model = StoredModel(str(folder / "m"), new=PRESETS["mail"])
    model.learn(items, day=1, classes=["ham", "spam"])
    yield from site(folder, folder / "m", "--review", str(folder / "box"))


@pytest.fixture(scope="module")
def people(tmp_path_factory, served_model):
    """The pages of users; the model's folder has `users` and `boxes`."""
    folder = tmp_path_factory.mktemp("people")
    put(folder / "boxes" / "ann", 1, written(1, "lunch with ann"))
    put(folder / "boxes" / "bob", 2, written(2, "lunch with bob"))
    put(folder / "boxes" / user_folder_name(HOSTILE_NAME), 3)
    (folder / "users" / "eve").mkdir(parents=True)
    (folder / "users" / "eve" / "model").touch()
    model = shutil.copy(served_model, folder / "m.nbspam")
    yield from site(folder, model, "--users", folder / "users", "--review", folder / "boxes")


def rows(page):
    return page.locator("ol.mail > li")


def patiently(page, has_happened, again):
    """Wait until something has happened on a page; do something again and again."""
    end = time.monotonic() + PATIENCE
    while not has_happened():
        assert time.monotonic() < end, page.inner_text("main")
        page.wait_for_timeout(200)
        again()


def wait_for_verdicts(page):
    """Reload the mailbox until all messages are judged: most are after a first look."""
    patiently(page, lambda: page.get_by_text("no verdict yet").count() == 0, page.reload)


def top_of(row):
    """Return how far below the top of the window a message begins, pixels."""
    return row.evaluate("each => each.getBoundingClientRect().top")


def focused(page):
    return page.locator("li:focus .subject").inner_text()


def pressed(page, key):
    with page.expect_navigation():
        page.keyboard.press(key)


def assert_looks_well(page):
    """Assert that a page fits a phone in the dark and a screen, and that axe finds nothing."""
    for width, scheme in ((PHONE, "dark"), (SCREEN, "light")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        assert overflow(page) <= 0
        for caption in page.locator("caption:visible").all():  # also of a table that scrolls
            assert caption.bounding_box()["width"] <= width
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(21, 24, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
        for each in page.locator("button:visible, a:visible").all()[:12]:
            assert each.bounding_box()["height"] >= 24  # pixels, to be hit
        page.evaluate(  # axe takes seconds for many messages
            "document.querySelectorAll('ol.mail > li:nth-child(n+20)').forEach(e => e.remove())"
        )
        assert complaints(page) == []


# ---- how they look ----


def test_every_page_of_the_site_looks_well_and_loads_nothing_else(browser, mailbox):
    url, home, _ = mailbox
    with visited(browser, home) as (page, heard):
        assert page.locator("h1").inner_text() == "nbspam"
        assert_looks_well(page)
        page.get_by_label("Token").fill("a guess")
        page.keyboard.press("Enter")
        assert "not the token" in page.get_by_role("alert").inner_text()
        assert page.title().startswith("This is not the token")
        assert_looks_well(page)
        page.get_by_label("Token").fill(url.partition("token=")[2])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(home)
        assert page.evaluate("document.cookie") == ""
        for path, title in (
            ("", "Mail"), ("?words=nothing", "Mail"), (f"message?key={key_of(5)}", "number 5"),
            ("message?key=gone", "Nothing to show"), ("server", "What the server has done"),
            ("doubtful", "Doubtful messages"), ("course", "How the model is doing"),
        ):  # fmt: skip
            page.goto(home + path)
            assert page.locator("h1").inner_text() == title
            assert_looks_well(page)
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        failed = "Failed to load resource"  # the statuses of wrong addresses
        assert all(each.startswith(home) or failed in each for each in heard), heard


def test_doubts_and_course_look_well_and_a_wrong_label_is_mended_by_a_key(browser, taught):
    url, home, model = taught
    with visited(browser, url) as (page, heard):
        page.goto(f"{home}doubtful")
        refresh = page.get_by_role("link", name="Refresh")
        patiently(page, lambda: page.get_by_role("status").count() == 0, refresh.click)
        assert rows(page).count() == 1
        assert rows(page).first.locator(".subject").inner_text().startswith('"><script>')
        assert page.title() == "nbspam: doubtful messages"
        assert_looks_well(page)
        before = StoredModel(model).told()
        pressed(page, "s")  # the first one has the focus
        assert rows(page).count() == 0
        after = StoredModel(model).told()
        changed = [after[digest] for digest in before if before[digest] != after[digest]]
        assert changed == ["spam"]

        page.goto(home)
        page.get_by_role("button", name="Ham").first.click()
        page.get_by_role("link", name="Over time").click()
        page.locator("svg").first.wait_for()
        assert page.locator("svg").count() == 3
        for each in page.locator("summary").all():
            each.click()
        assert_looks_well(page)
        assert all(each.startswith(home) for each in heard), heard


def test_pages_of_users_look_well_and_a_click_logs_in_as_one(browser, people):
    url, home, model = people
    users = Path(model).parent / "users"
    with visited(browser, url, PHONE, dark=True) as (page, _):
        assert page.locator("tbody th").all_inner_texts()[1:] == ["ann", "bob", "eve"]
        assert page.title() == "nbspam: users"
        assert "\u202e" not in page.content()
        assert_looks_well(page)
        page.get_by_role("link", name="ann", exact=True).click()
        page.get_by_text("Mail of ann").wait_for()
        assert page.url == home
        names = page.get_by_role("navigation", name="Pages").inner_text().split()
        assert names == ["Mail", "Doubtful", "Over", "time"]
        page.get_by_role("button", name="Spam").click()
        page.get_by_text("you said spam").wait_for()
        assert list(StoredModel(str(users / "ann" / "model")).told().values()) == ["spam"]
        assert not (users / "bob").exists()
    for name, words in (("", '"><script>'), ("eve", "no mailbox of your name")):
        with visited(browser, url, PHONE) as (page, _):
            link = page.get_by_role("link", name=name) if name else page.locator("tbody a")
            link.first.click()
            page.get_by_text(words).first.wait_for()
            assert_looks_well(page)


# ---- keys and clicks ----


def test_keys_move_teach_and_undo(browser, mailbox):
    url, _, model = mailbox
    newest = N_MESSAGES - 1
    with visited(browser, url) as (page, _):
        page.keyboard.press("ArrowDown")
        assert focused(page) == f"number {newest}"
        pressed(page, "s")
        assert focused(page) == f"number {newest - 1}"  # the next one
        learned = f"Learned as spam: number {newest}"
        assert page.get_by_role("status").inner_text().startswith(learned)
        assert list(StoredModel(model).told().values()) == ["spam"]
        pressed(page, "h")
        assert sorted(StoredModel(model).told().values()) == ["ham", "spam"]
        page.keyboard.press("ArrowUp")
        assert focused(page) == f"number {newest - 1}"
        with page.expect_navigation():  # the key u of a Russian keyboard
            page.evaluate(PRESSES, [{"key": "г", "code": "KeyU"}])
        pressed(page, "u")
        assert StoredModel(model).told() == {}
        assert page.get_by_role("status").inner_text() == f"Taken back: number {newest}"
        assert focused(page) == f"number {newest}"
        pressed(page, "Enter")
        assert page.locator("h1").inner_text() == f"number {newest}"
        pressed(page, "h")
        page.get_by_role("form", name="you said ham").and_(page.locator(":focus")).wait_for()
        pressed(page, "u")
        assert StoredModel(model).told() == {}
        # A key that is held, or comes before the answer to the one before, teaches nothing.
        page.goto(url)
        page.keyboard.press("ArrowDown")
        with page.expect_navigation():
            page.evaluate(PRESSES, [{"key": "h", "repeat": True}, {"key": "s"}, {"key": "h"}])
        assert list(StoredModel(model).told().values()) == ["spam"]
        pressed(page, "u")
        # Where one writes they are letters, and with Control they are the browser's.
        page.goto(url)
        page.keyboard.press("Control+s")
        page.get_by_label("Sender or subject").press_sequentially("number 7 sh")
        assert page.get_by_label("Sender or subject").input_value() == "number 7 sh"
        assert StoredModel(model).told() == {}


@pytest.mark.parametrize("has_scripts", [True, False])
def test_clicks_teach_and_undo_with_scripts_and_without(browser, mailbox, has_scripts):
    url, _, model = mailbox
    context = browser.new_context(java_script_enabled=has_scripts)
    page = context.new_page()
    page.goto(url)
    wait_for_verdicts(page)
    assert page.locator(".keys").is_visible() == has_scripts  # named only where they work
    page.get_by_label("Sender or subject").fill("42@a number")
    page.get_by_label("Order").select_option("unsure")
    page.get_by_role("button", name="Show").click()
    row = rows(page).filter(has_text="number 42")
    row.first.get_by_role("button", name="Spam").click()
    page.get_by_text("you said spam").wait_for()
    assert "words=42%40a+number&order=unsure" in page.url
    assert list(StoredModel(model).told().values()) == ["spam"]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    page.get_by_text("you said").wait_for(state="detached")
    assert StoredModel(model).told() == {}
    context.close()


def test_a_double_click_is_one_click(browser, mailbox):
    # Its second half would teach again, undo nothing, or meet a button of the next page.
    url, _, model = mailbox
    with visited(browser, url) as (page, heard):
        rows(page).nth(30).get_by_role("button", name="Spam").dblclick(delay=80)
        page.get_by_role("status").wait_for()
        assert list(StoredModel(model).told().values()) == ["spam"]
        page.get_by_role("status").get_by_role("button", name="Undo").dblclick(delay=80)
        page.get_by_role("status").get_by_text("Taken back").wait_for()
        assert StoredModel(model).told() == {}
        assert sum(each.endswith("/tell") for each in heard) == 2


def test_many_messages_scroll_and_have_pages(browser, mailbox):
    url, *_ = mailbox
    with visited(browser, url) as (page, _):
        wait_for_verdicts(page)
        assert rows(page).count() == PAGE_SIZE
        assert top_of(rows(page).last) > 5000
        page.mouse.move(400, 400)
        page.mouse.wheel(0, 10_000_000)
        patiently(page, lambda: top_of(rows(page).last) < 800, lambda: None)
        rows(page).last.get_by_role("button", name="Ham").focus()
        page.keyboard.press("ArrowUp")
        assert 0 < top_of(page.locator("li:focus")) < 800
        page.get_by_role("link", name="Next").click()
        page.wait_for_url("**start=100")
        first = rows(page).first.locator(".subject").inner_text()
        assert first == f"number {N_MESSAGES - PAGE_SIZE}"
        page.get_by_role("link", name="Next").click()
        page.get_by_role("link", name="Next").wait_for(state="detached")
        page.get_by_role("link", name="Previous").click()
        page.wait_for_url("**start=100")
        assert page.get_by_text("251 of 251 messages, here 101 to 200.").is_visible()


def test_the_focus_is_seen_and_stays_with_its_message(browser, mailbox):
    url, _, model = mailbox
    with visited(browser, url) as (page, _):
        wait_for_verdicts(page)
        page.set_viewport_size({"width": SCREEN, "height": 300})
        rows(page).nth(50).get_by_role("link").click()
        page.locator("form.one:focus").wait_for()
        # Where shadows and backgrounds are not drawn, but those of marks are.
        page.emulate_media(forced_colors="active")
        assert len({page.evaluate(MARK_COLOUR, name) for name in ("s2", "h2")}) == 2
        page.keyboard.press("ArrowDown")  # no message below: the page scrolls
        patiently(page, lambda: page.evaluate("scrollY") > 0, lambda: None)
        page.go_back()
        page.locator("li:focus").wait_for()
        assert focused(page) == f"number {N_MESSAGES - 50}"
        patiently(page, lambda: 0 < top_of(page.locator("li:focus")) < 300, lambda: None)
        page.evaluate(COMES_BACK)
        assert focused(page) == f"number {N_MESSAGES - 50}"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        pressed(page, "h")
        bottom = page.evaluate("document.querySelector('.news').getBoundingClientRect().bottom")
        for _ in range(30):
            page.keyboard.press("Shift+Tab")
            assert top_of(page.locator(":focus")) >= bottom
        pressed(page, "u")
        assert page.title().startswith("Taken back: number 200")
        assert StoredModel(model).told() == {}


def test_a_phone_shows_mail_first_and_searches_by_a_click(browser, mailbox):
    with visited(browser, mailbox[0], PHONE) as (page, _):
        wait_for_verdicts(page)
        assert top_of(rows(page).first) < 200
        assert not page.get_by_role("search").is_visible()
        page.get_by_role("link", name="Search").click()
        page.get_by_label("Sender or subject").fill("number 7")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**words=number+7**")
        assert page.get_by_role("search").is_visible()
        assert_looks_well(page)


# ---- attacks ----


def test_a_page_of_another_origin_can_neither_read_nor_post(browser, mailbox, tmp_path):
    # The attacker's page is a file, whose origin is `null`; the browser has our session.
    url, home, _ = mailbox
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
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
    assert "a.example" not in page.frames[1].content()
    page.get_by_role("button").click()
    page.wait_for_url(f"{home}logout")
    assert page.inner_text("body").strip() == "Origin is another site"
    page.goto(home)
    assert page.locator("h1").inner_text() == "Mail"  # still logged in
    context.close()


def test_hostile_mail_is_text_and_runs_nothing(browser, mailbox):
    url, home, _ = mailbox
    with visited(browser, url) as (page, heard):
        assert rows(page).first.locator(".subject").inner_text().startswith('"><script>')
        assert page.title() == "nbspam: mail"
        rows(page).first.locator(".subject a").click()
        page.locator("h1").wait_for()
        assert page.title().startswith('"><script>')
        assert "\u202e" not in page.content()
        assert page.locator("img").count() == 0
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
