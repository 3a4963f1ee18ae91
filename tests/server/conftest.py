"""Models and servers for the tests of the server; tests may be coroutines."""

import asyncio
import inspect
import shutil

import pytest

from maildirs import news
from nbspam.classifier.training import learn_items
from nbspam.settings import PRESETS
from nbspam.sources.items import Item, read_items
from nbspam.store.open import save_classifier
from serving import serving
from support import first_mails


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def served_model(tmp_path_factory, mail_classifier):
    """Where a model of the first hundred embedded messages of each class lies."""
    path = tmp_path_factory.mktemp("served") / "m.nbspam"
    save_classifier(str(path), mail_classifier)
    return path


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Where the model of a site with users lies, which calls the news of the club ham."""
    path = tmp_path_factory.mktemp("site") / "model"
    items = [*read_items([str(first_mails())]), *(Item("-", "ham", news(n)) for n in range(20))]
    save_classifier(str(path), learn_items(items, PRESETS["mail"]).classifier)
    return path


@pytest.fixture
def own_model(tmp_path, served_model):
    """Where a copy of that model lies, for a test that changes it."""
    return shutil.copy(served_model, tmp_path / "m.nbspam")


@pytest.fixture(scope="module")
def server(tmp_path_factory, served_model):
    """A server that a module's tests share; it learns, and knows the password."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "password").write_text("open sesame\n")
    model = shutil.copy(served_model, folder / "m.nbspam")
    rights = ("--allow-tell", "--password-file", str(folder / "password"))
    with serving(model, folder, *rights, "--jobs", "2") as found:
        yield found
