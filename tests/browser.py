"""A real browser for tests of pages: Chromium without network, driven by playwright.

The extra `dev` brings playwright, the system's packages bring Chromium; axe-core lies in
build/axe.  `.ci/run` gets all of them.  Tests are skipped with a reason where one is missing.
"""

import json
import shutil
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from support import ROOT

AXE = ROOT / "build" / "axe" / "package" / "axe.min.js"
PHONE, SCREEN = 320, 1280  # pixels
PATIENCE = 60  # seconds
# Root cannot use the sandbox, containers have a small /dev/shm, and nothing needs a graphics card.
FLAGS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking",
]  # fmt: skip


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def launched():
    """Yield the browser; without any the test is skipped."""
    if find_spec("playwright") is None:
        pytest.skip("no playwright: pip install playwright")
    if chromium() is None:
        pytest.skip("no Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=FLAGS, timeout=1000 * PATIENCE
        )
        yield browser
        browser.close()


@contextmanager
def visited(browser, url, width=SCREEN, dark=False, media=None):
    """Yield a page, and a list of what it asked for and of what it complained.

    url: of a file, without network, or of a server on this machine.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        offline=url.startswith("file:"),
    )
    page = context.new_page()
    heard = []
    page.on("request", lambda request: heard.append(request.url))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    if media is not None:
        page.emulate_media(media=media)
    page.goto(url)
    yield page, heard
    context.close()


def opened(browser, path, *how, **more):
    """Yield the page of a file, without network; see `visited`."""
    return visited(browser, path.as_uri(), *how, **more)


def overflow(page):
    """Return by how many pixels a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def complaints(page, *rules):
    """Return what axe-core finds wrong with a page: rule and first place.

    rules: those that are checked; all of them unless given.
    """
    if not AXE.exists():
        pytest.skip(f"no axe-core: npm pack axe-core, and unpack it in {AXE.parent.parent}")
    page.evaluate(AXE.read_text("utf-8"))
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    found = page.evaluate(
        "options => axe.run(options).then(result => JSON.stringify(result.violations))", options
    )
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in json.loads(found)]
