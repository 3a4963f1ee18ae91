"""The pages in a real browser: logging in, keys and clicks, hostile mail, how each page looks."""

import os
import re
import shutil
import time

import pytest

from browser import PHONE, SCREEN, complaints, overflow, visited
from maildirs import key_of, put, written
from nbspam.server.page.pages import PAGE_SIZE
from nbspam.server.users import user_folder_name
from nbspam.settings import SettingsChoices, chosen_settings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel, told_at
from protocols import check
from serving import free_port, serving
from support import HAM, SPAM

pytestmark = pytest.mark.slow
N_MESSAGES = 1000
N_OF_CLASS, N_NEW = 40, 10
SCRIPT = "<script>document.title = 'run'</script>"
HOSTILE = f'">{SCRIPT}<img src=x onerror=alert(1)>\u202eexe'
HOSTILE_NAME = f'">{SCRIPT} \u202e{"x" * 60}'


def site(folder, model, *options):
    """Run a server with a page; yield the address that logs in, its home, the model and server."""
    options = ("--web", str(free_port()), "--jobs", "1", *options)
    with serving(model, folder, *options) as server:
        url = server.errors.read_text().splitlines()[0]
        yield url, url.partition("?")[0], str(model), server


@pytest.fixture(scope="module")
def bare(tmp_path_factory, served_model):
    """A server without mail, which has judged something."""
    folder = tmp_path_factory.mktemp("bare")
    for found in site(folder, shutil.copy(served_model, folder / "m.nbspam")):
        found[-1].ask(check(SPAM))
        found[-1].ask(b"never a request\r\n")
        yield found


@pytest.fixture(scope="module")
def mailbox(tmp_path_factory, served_model):
    """A page with a thousand messages."""
    folder = tmp_path_factory.mktemp("mailbox")
    for number in range(N_MESSAGES):
        put(folder / "box", number, written(number, f"zebra{number} in the meadow"))
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
    model = StoredModel(
        str(folder / "m.nbspam"), new=chosen_settings(SettingsChoices(), is_text=False)
    )
    model.learn(items, day=1, classes=["ham", "spam"])
    yield from site(folder, folder / "m.nbspam", "--review", str(folder / "box"))


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


def wait_for_verdicts(page):
    """Reload the mailbox until all messages are judged: most are after a first look."""
    for _ in range(60):
        if page.get_by_text("no verdict yet").count() == 0:
            return
        page.wait_for_timeout(500)
        page.reload()
    raise AssertionError(page.inner_text("main"))


def top_of(row):
    """Return how far below the top of the window a message begins, pixels."""
    return row.evaluate("each => each.getBoundingClientRect().top")


def focused(page):
    """Return the subject of the message that has the focus."""
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
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(21, 24, 27)" if scheme == "dark" else "rgb(255, 255, 255)")
        assert page.locator("button").first.bounding_box()["height"] >= 24  # pixels, to be hit
        page.evaluate(  # axe takes seconds for a thousand messages
            "document.querySelectorAll('ol.mail > li:nth-child(n+20)').forEach(e => e.remove())"
        )
        assert complaints(page) == []


# ---- logging in ----


def test_the_address_in_the_first_line_logs_in_and_hides_the_token(browser, bare):
    url, home, *_ = bare
    with visited(browser, url) as (page, heard):
        assert page.url == home
        assert page.locator("h1").inner_text() == "What the server has done"
        assert "not in the words of its protocol" in page.inner_text("main")
        assert set(heard) <= {url, home}
        assert page.evaluate("document.cookie") == ""
        assert_looks_well(page)


def test_a_person_logs_in_and_out_by_hand(browser, bare):
    url, home, *_ = bare
    with visited(browser, home) as (page, _):
        assert_looks_well(page)
        page.get_by_label("Token").fill("a guess")
        page.keyboard.press("Enter")
        assert "not the token" in page.get_by_role("alert").inner_text()
        page.get_by_label("Token").fill(url.partition("token=")[2])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(home)
        assert page.locator("h1").inner_text() == "What the server has done"
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        page.goto(home)
        assert page.locator("h1").inner_text() == "nbspam"


def test_a_page_of_another_origin_can_neither_read_nor_post(browser, bare, tmp_path):
    # The attacker's page is a file, whose origin is `null`; the browser has our session.
    url, home, *_ = bare
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
    assert "What the server has done" not in page.frames[1].content()
    page.get_by_role("button").click()
    page.wait_for_url(f"{home}logout")
    assert page.inner_text("body").strip() == "Origin is another site"
    page.goto(home)
    assert page.locator("h1").inner_text() == "What the server has done"  # still logged in
    context.close()


# ---- mail ----


def test_keys_move_teach_and_undo(browser, mailbox):
    url, _, model, _ = mailbox
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
        assert page.get_by_role("status").inner_text() == "Taken back: number 999"
        assert focused(page) == "number 999"
        pressed(page, "Enter")
        assert page.locator("h1").inner_text() == "number 999"
        pressed(page, "h")
        assert "you said ham" in page.inner_text("main")
        assert_looks_well(page)
        pressed(page, "u")
        assert told_at(model) == {}
        # Where one writes they are letters, and with Control they are the browser's.
        page.goto(url)
        page.keyboard.press("Control+s")
        page.get_by_label("Sender or subject").press_sequentially("number 7 sh")
        assert page.get_by_label("Sender or subject").input_value() == "number 7 sh"
        assert told_at(model) == {}


@pytest.mark.parametrize("has_scripts", [True, False])
def test_clicks_teach_and_undo_with_scripts_and_without(browser, mailbox, has_scripts):
    url, _, model, _ = mailbox
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
    assert list(told_at(model).values()) == ["spam"]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    page.get_by_text("you said").wait_for(state="detached")
    assert told_at(model) == {}
    context.close()


def test_hostile_mail_is_text_and_runs_nothing(browser, mailbox):
    url, home, *_ = mailbox
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


def test_a_thousand_messages_scroll_and_have_pages(browser, mailbox):
    url, home, *_ = mailbox
    with visited(browser, url) as (page, _):
        wait_for_verdicts(page)
        assert rows(page).count() == PAGE_SIZE
        assert top_of(rows(page).last) > 5000
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
        page.get_by_role("link", name="Next").click()
        page.wait_for_url("**start=100")
        assert rows(page).first.locator(".subject").inner_text() == "number 900"
        page.goto(f"{home}?words=number&start=900")
        page.get_by_role("link", name="Next").wait_for(state="detached")
        page.get_by_role("link", name="Previous").click()
        page.wait_for_url("**words=number&start=800")
        assert page.get_by_text("1,000 of 1,001 messages, here 801 to 900.").is_visible()
        for path in ("", f"message?key={key_of(5)}", "?words=nothing"):
            page.goto(home + path)
            assert_looks_well(page)


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


def test_who_logs_in_sees_the_wanted_message_and_a_second_undo_leads_back(browser, mailbox):
    url, home, model, _ = mailbox
    wanted = f"{home}message?key={key_of(7)}"
    with visited(browser, wanted) as (page, _):
        page.get_by_label("Token").fill(url.partition("token=")[2])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(wanted)
        page.get_by_role("button", name="Spam").click()
        page.get_by_text("you said spam").wait_for()
        other = page.context.new_page()
        other.goto(wanted)
        other.get_by_role("button", name="Undo").click()
        other.get_by_text("Taken back: number 7").wait_for()
        assert told_at(model) == {}
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("alert").wait_for()
        assert "There is nothing to take back" in page.get_by_role("alert").inner_text()
        assert_looks_well(page)
        page.get_by_role("link", name="Back to the mail").click()
        page.wait_for_url(home)


# ---- the model's course, doubtful messages ----


def doubtful(page, home):
    """Go to the doubtful messages, and wait until they are found."""
    page.goto(f"{home}doubtful")
    for _ in range(200):
        if page.get_by_role("status").count() == 0:
            return rows(page)
        page.wait_for_timeout(100)
        page.get_by_role("link", name="Refresh").click()
    raise AssertionError(page.inner_text("main"))


def test_a_label_that_is_wrong_is_found_and_mended_by_a_click(browser, taught):
    url, home, model, _ = taught
    with visited(browser, url) as (page, heard):
        found = doubtful(page, home)
        assert found.count() == 1
        assert found.first.locator(".subject").inner_text().startswith('"><script>')
        assert page.title() == "nbspam: doubtful messages"
        assert_looks_well(page)
        before = told_at(model)
        with page.expect_navigation():
            page.keyboard.press("s")  # the first one has the focus
        assert found.count() == 0
        after = told_at(model)
        changed = [after[digest] for digest in before if before[digest] != after[digest]]
        assert changed == ["spam"]
        assert all(each.startswith(home) for each in heard), heard


def test_the_course_is_drawn(browser, taught):
    url, home, *_ = taught
    with visited(browser, url) as (page, heard):
        page.get_by_role("button", name="Ham").first.click()
        page.get_by_role("link", name="Over time").click()
        page.locator("svg").first.wait_for()
        assert page.locator("svg").count() == 3
        for each in page.locator("summary").all():
            each.click()
        assert_looks_well(page)
        assert all(each.startswith(home) for each in heard), heard


# ---- users ----


def test_a_click_on_a_user_logs_in_as_that_user_who_teaches_their_own_model(browser, people):
    url, home, model, _ = people
    users = os.path.join(os.path.dirname(model), "users")
    with visited(browser, url, PHONE, dark=True) as (page, heard):
        assert page.locator("h1").inner_text() == "Users"
        assert page.locator("tbody th").all_inner_texts()[1:] == ["ann", "bob", "eve"]
        assert page.title() == "nbspam: users"
        assert "\u202e" not in page.content()
        assert_looks_well(page)

        page.get_by_role("link", name="ann", exact=True).click()
        page.get_by_text("Mail of ann").wait_for()
        assert page.url == home
        assert page.get_by_role("navigation", name="Pages").inner_text().split() == [
            "Mail", "Doubtful", "Over", "time",
        ]  # fmt: skip
        page.get_by_role("button", name="Spam").click()
        page.get_by_text("you said spam").wait_for()
        assert list(told_at(os.path.join(users, "ann", "model")).values()) == ["spam"]
        assert not os.path.exists(os.path.join(users, "bob"))

        for address in ("server", f"message?key={key_of(2)}"):
            page.goto(home + address)
            assert "bob" not in page.inner_text("body")
        assert all(each.startswith(home) or "Failed to load" in each for each in heard), heard


def test_names_and_missing_mailboxes_are_shown_on_a_phone(browser, people):
    url, *_ = people
    with visited(browser, url, PHONE) as (page, _):
        page.locator("tbody a").first.click()
        page.locator("ol.mail").wait_for()
        assert '"><script>' in page.inner_text("header")
        assert_looks_well(page)
    with visited(browser, url, PHONE) as (page, _):
        page.get_by_role("link", name="eve").click()
        page.get_by_text(re.compile("no mailbox of your name")).wait_for()
        assert_looks_well(page)
