"""Who may see the page: the secret on disk, tokens made from it, and requests of other sites."""

import os
import socket

import pytest

from nbspam.errors import ModelFileError, UsageError
from nbspam.server.addresses import Address
from nbspam.server.review.access import (
    SESSION_SECONDS,
    Access,
    access_beside,
    hosts_of,
    page_of,
    stranger,
)

ONE, OTHER = Access(b"1" * 32), Access(b"2" * 32)
HERE = Address("127.0.0.1", 8025)
OWN = {"host": "127.0.0.1:8025", "origin": "http://127.0.0.1:8025"}


# ---- tokens ----


def test_a_token_is_known_by_who_has_the_secret_only():
    assert ONE.is_token(Access(b"1" * 32).token)
    for wrong in ("", OTHER.token, ONE.token[:-1], ONE.token + "=", "\ufffd\ud800", "ü" * 43):
        assert not ONE.is_token(wrong)


def test_a_session_ends_after_a_month_and_is_nobody_elses():
    session = ONE.new_session(1000.0)

    assert ONE.is_session(session, 1000.0)
    assert ONE.is_session(session, 999 + SESSION_SECONDS)
    assert not ONE.is_session(session, 1000 + SESSION_SECONDS)
    assert not OTHER.is_session(session, 1000.0)
    assert ONE.new_session(1000.0) != session


def test_what_was_signed_for_one_purpose_serves_no_other():
    session = ONE.new_session(1000.0)
    begun, _, mac = session.rpartition(".")
    later = f"2{begun}.{mac}"  # the same session, begun in another century

    for wrong in ("", ".", "..", ONE.token, later, ONE.form_token(session), f"x.{ONE.token}"):
        assert not ONE.is_session(wrong, 1000.0)
    for wrong in ("", session, ONE.token, ONE.form_token(ONE.new_session(1000.0))):
        assert not ONE.is_form_token(wrong, session)
    assert not ONE.is_token(ONE.form_token(session))
    assert ONE.is_form_token(ONE.form_token(session), session)


# ---- the secret ----


def test_the_secret_is_made_once_and_only_its_owner_can_read_it(own_model):
    os.chmod(own_model, 0o644)
    first = access_beside(str(own_model))

    assert os.stat(f"{own_model}.secret").st_mode & 0o777 == 0o600
    assert access_beside(str(own_model)).token == first.token
    os.unlink(f"{own_model}.secret")
    assert access_beside(str(own_model)).token != first.token


def test_the_secret_is_that_of_the_model_to_which_a_link_leads(own_model, tmp_path):
    (tmp_path / "link").symlink_to(own_model)

    assert access_beside(str(tmp_path / "link")).token == access_beside(str(own_model)).token
    assert not (tmp_path / "link.secret").exists()


def spoil_mode(path):
    path.write_text("0" * 64)
    path.chmod(0o640)


def spoil_text(path):
    path.write_text("open sesame\n")
    path.chmod(0o600)


def spoil_length(path):
    path.write_text("00\n")
    path.chmod(0o600)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (spoil_mode, "others than its owner can read it; remove it"),
        (spoil_text, "not a secret; remove it, and a new one is made"),
        (spoil_length, "not a secret; remove it, and a new one is made"),
        (lambda path: path.symlink_to("/dev/zero"), "a symbolic link, and none is followed here"),
        (lambda path: path.mkdir(), "a folder; remove it"),
    ],
)
def test_a_secret_that_others_know_or_made_is_refused(tmp_path, spoil, why):
    spoil(tmp_path / "m.secret")

    with pytest.raises(ModelFileError, match=f"m.secret: {why}"):
        access_beside(str(tmp_path / "m"))


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ModelFileError, match="Not a directory"):
        access_beside(str(tmp_path / "file" / "m"))


# ---- where the page is ----


def test_the_address_of_the_page_has_the_token(tmp_path):
    model = str(tmp_path / "m")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = page_of(listener, model)

    assert found == f"http://127.0.0.1:{port}/?token={access_beside(model).token}"


def test_the_page_is_for_this_machine_only(tmp_path):
    with (
        socket.create_server(("0.0.0.0", 0)) as listener,
        pytest.raises(UsageError, match=r"other machines can reach it, and it is not encrypted"),
    ):
        page_of(listener, str(tmp_path / "m"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(UsageError, match="no browser opens it; give 127"):
            page_of(listener, str(tmp_path / "m"))
    assert not (tmp_path / "m.secret").exists()


# ---- requests of other sites ----


def test_hosts_are_spelt_as_browsers_spell_them():
    assert hosts_of(HERE) == {"127.0.0.1:8025", "localhost:8025"}
    assert hosts_of(Address("::1", 8025)) == {"[::1]:8025", "localhost:8025"}
    assert {"127.0.0.1", "localhost"} <= hosts_of(Address("127.0.0.1", 80))


@pytest.mark.parametrize(
    "host",
    [
        None, "", "evil.example:8025", "evil.example", "127.0.0.1", "127.0.0.1:8026",
        "127.0.0.1:8025.evil.example", "evil.example#127.0.0.1:8025", "localhost.:8025",
        "127.0.0.1:8025 ", "0.0.0.0:8025", "[::1]:8025", "2130706433:8025",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_name_that_leads_here_is_refused(method, host):
    # DNS rebinding: evil.example has our address, and its page asks us by its own name.
    headers = {} if host is None else {"host": host, "origin": f"http://{host}"}

    assert "Host is not 127.0.0.1:8025" in stranger(method, headers, HERE)


@pytest.mark.parametrize(
    "origin",
    [
        "", "null", "http://evil.example", "https://127.0.0.1:8025", "http://127.0.0.1",
        "http://127.0.0.1:9999", "http://localhost:8025", "http://127.0.0.1:8025.evil.example",
        "http://127.0.0.1:8025/", "http://x@127.0.0.1:8025",
    ],
)  # fmt: skip
def test_another_origin_is_refused_whatever_it_asks_for(origin):
    for method in ("GET", "POST"):
        for site in ("same-origin", "none"):
            headers = {**OWN, "origin": origin, "sec-fetch-site": site}
            assert stranger(method, headers, HERE) == "Origin is another site"


def test_a_post_must_say_that_it_comes_from_the_page():
    host = {"host": "127.0.0.1:8025"}

    assert stranger("POST", OWN, HERE) is None
    assert stranger("POST", {**host, "sec-fetch-site": "same-origin"}, HERE) is None
    for more in ({}, {"sec-fetch-site": "none"}, {"referer": "http://127.0.0.1:8025/"}):
        assert "neither Origin" in stranger("POST", {**host, **more}, HERE)
    assert stranger("GET", host, HERE) is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_link_here_but_embed_nothing(site):
    host = {"host": "localhost:8025", "sec-fetch-site": site}
    link = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

    assert stranger("GET", {**host, **link}, HERE) is None
    for mode, kind in (("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
        more = {"sec-fetch-mode": mode, "sec-fetch-dest": kind}
        assert "another site asks for a part" in stranger("GET", {**host, **more}, HERE)
    # A form of another page, which some browsers send without Origin.
    assert stranger("POST", {**host, **link}, HERE) is not None
