"""The page of an account in a real browser, against real servers: a click teaches and moves."""

import shutil

import pytest

from accounts import Box, H, S, letter
from browser import PHONE, SCREEN, complaints, overflow, visited
from fake_imap import PASSWORD
from mail_servers import Cyrus, Dovecot, mail_server, needs
from maildirs import ham
from serving import free_port, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = [pytest.param(kind, id=kind.__name__, marks=needs[kind]) for kind in (Dovecot, Cyrus)]
LONG = (
    b"Message-ID: <long@x>\nFrom: =?utf-8?q?Zo=C3=AB?= <%b@x.example>\nSubject: %b\n\nlunch\n"
    % (b"z" * 60, b"Donaudampfschifffahrtsgesellschaftskapitaen" * 3)
)


@pytest.fixture(params=KINDS)
def account(request, trained_well, tmp_path):
    shutil.copytree(trained_well, tmp_path / "data")
    with mail_server(request.param) as server:
        box = Box(server, tmp_path / "data" / "m.nbspam")
        box.put("INBOX", H[0], LONG, *(letter(ham, n) for n in range(40, 60)))
        box.put("Junk", S[0])
        yield box


def row(page, subject):
    return page.locator("ol.mail > li").filter(has_text=subject)


def test_a_click_on_a_named_account_teaches_and_moves(account, browser, config, tmp_path):
    server, port = account.server, free_port()
    config.write_text(
        f'[account.home]\nurl = "{account.url()}"\npassword-command = "printf %s $SECRET"\n'
        f'model-file = "{account.model}"\nspam-folder = "Junk"\n'
    )
    options = ("--jobs", "1", "--web", str(port), "--review", "home", "--move")
    with serving(str(tmp_path / "other"), tmp_path, *options, env={"SECRET": PASSWORD}) as served:
        first = next(x for x in served.errors.read_text().splitlines() if "token=" in x)
        with visited(browser, first) as (page, heard):
            for width, scheme in ((PHONE, "dark"), (SCREEN, "light")):
                page.set_viewport_size({"width": width, "height": 800})
                page.emulate_media(color_scheme=scheme)
                assert overflow(page) <= 0
                assert complaints(page) == []
            assert page.locator("ol.mail > li").count() == 23
            assert row(page, "Donau").locator("b").first.text_content() == "ham"
            pills = row(page, "cheap pills")
            assert f"in {server.named('Junk')}" in pills.text_content()
            pills.get_by_role("button", name="Ham").click()
            said = page.get_by_role("status").inner_text()
            assert said.startswith("Learned as ham: cheap pills")
            assert (server.bodies("Junk"), account.label_of(S[0])) == ([], "ham")
            assert S[0] in server.bodies("INBOX")
            row(page, "cheap pills").locator(".subject a").click()
            page.get_by_text("you said ham").wait_for()
            page.get_by_text("in INBOX").wait_for()
            assert overflow(page) <= 0
            assert complaints(page) == []
            page.get_by_role("button", name="Undo").first.click()
            page.get_by_text("you said").wait_for(state="detached")
            assert (server.bodies("Junk"), account.label_of(S[0])) == ([S[0]], None)
            assert all(each.startswith(f"http://127.0.0.1:{port}/") for each in heard), heard
        assert account.sort(spam_folder="Junk").learned == []
    flags = [f for name in ("INBOX", "Junk") for _, f in server.contents(name)]
    assert not any("\\Seen" in each for each in flags)
    assert not (tmp_path / "other").exists()
