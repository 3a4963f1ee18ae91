"""Who may see the page: the secret on disk, tokens made from it, and requests of other sites."""

import os
import socket
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import ModelFileError, UsageError
from nbspam.server.addresses import Address
from nbspam.server.page.access import Access, access_beside, hosts_of, page_of, stranger
from nbspam.server.users import known_as

ONE, OTHER = Access("1" * 64), Access("2" * 64)
HERE = Address("127.0.0.1", 8025)
OWN = {"host": "127.0.0.1:8025", "origin": "http://127.0.0.1:8025"}
NAMES = st.text(max_size=30) | st.text("a.\0 _-", max_size=6)
MORE = st.text(max_size=60) | st.text("aA._-=", max_size=60)


# ---- tokens ----


@given(NAMES, NAMES, st.integers(0, 99))
def test_a_token_logs_in_the_user_whom_it_names_and_nobody_else(name, other, cut):
    user, victim = known_as(name), known_as(other)
    token = ONE.token_of(user)
    data, _, mac = token.rpartition(".")
    named = ONE.token_of(victim).rpartition(".")[0]

    assert ONE.user_of(token) == user
    assert OTHER.user_of(token) is None
    assert (ONE.token_of(victim) == token) == (victim == user)
    assert quote(token, safe="") == token  # so it can be in an address as it is
    for made in (f"{named}.{mac}", named + token, f"{named}.{token}", data, mac):
        assert ONE.user_of(made) == (user if made == token else None)
    assert ONE.user_of(token[:cut] + token[cut + 1 :]) in {None, user}


@given(MORE, MORE)
def test_a_malformed_token_is_nobodys_and_never_an_error(text, more):
    for wrong in (text, f"{text}.{more}", f"{text}.{ONE.token_of('ann')}"):
        assert ONE.user_of(wrong) is None


def test_a_user_whose_name_is_not_utf_8_has_a_token():
    assert ONE.user_of(ONE.token_of("caf\udce9")) == "caf\udce9"


# ---- the secret ----


def site_token(model):
    return access_beside(str(model)).token_of("")


def test_the_secret_is_made_once_and_only_its_owner_can_read_it(own_model):
    os.chmod(own_model, 0o644)
    first = site_token(own_model)

    assert os.stat(f"{own_model}.secret").st_mode & 0o777 == 0o600
    assert site_token(own_model) == first
    os.unlink(f"{own_model}.secret")
    assert site_token(own_model) != first


def test_the_secret_is_that_of_the_model_to_which_a_link_leads(own_model, tmp_path):
    (tmp_path / "link").symlink_to(own_model)

    assert site_token(tmp_path / "link") == site_token(own_model)
    assert not (tmp_path / "link.secret").exists()


def written(text, mode=0o600):
    def spoil(path):
        path.write_text(text)
        path.chmod(mode)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (written("0" * 64, 0o640), "others than its owner can read it; remove it"),
        (written("open sesame\n"), "not a secret; remove it, and a new one is made"),
        (written("00\n"), "not a secret; remove it, and a new one is made"),
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

    assert found == f"http://127.0.0.1:{port}/?token={site_token(model)}"


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


def test_another_name_that_leads_here_is_refused():
    for host in (
        None, "", "evil.example:8025", "evil.example", "127.0.0.1", "127.0.0.1:8026",
        "127.0.0.1:8025.evil.example", "evil.example#127.0.0.1:8025", "localhost.:8025",
        "127.0.0.1:8025 ", "0.0.0.0:8025", "[::1]:8025", "2130706433:8025",
        "user@127.0.0.1:8025", "127.0.0.1.:8025", "127.1:8025", "0x7f000001:8025",
        "[::ffff:127.0.0.1]:8025", "127.0.0.1:8025, 127.0.0.1:8025", "127.0.0.1:8025/",
    ):  # fmt: skip
        for method in ("GET", "POST"):
            # DNS rebinding: evil.example has our address, and its page asks us by its own name.
            headers = {} if host is None else {"host": host, "origin": f"http://{host}"}

            assert "Host is not 127.0.0.1:8025" in stranger(method, headers, HERE)


def test_another_origin_is_refused_whatever_it_asks_for():
    for origin in (
        "", "null", "http://evil.example", "https://127.0.0.1:8025", "http://127.0.0.1",
        "http://127.0.0.1:9999", "http://localhost:8025", "http://127.0.0.1:8025.evil.example",
        "http://127.0.0.1:8025/", "http://x@127.0.0.1:8025",
    ):  # fmt: skip
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


def test_other_sites_may_link_here_but_embed_nothing():
    for site in ("cross-site", "same-site"):
        host = {"host": "localhost:8025", "sec-fetch-site": site}
        link = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}

        assert stranger("GET", {**host, **link}, HERE) is None
        for mode, kind in (("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
            more = {"sec-fetch-mode": mode, "sec-fetch-dest": kind}
            assert "another site asks for a part" in stranger("GET", {**host, **more}, HERE)
        # A form of another page, which some browsers send without Origin.
        assert stranger("POST", {**host, **link}, HERE) is not None
