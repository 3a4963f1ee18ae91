"""The head of a request of spamd's protocol."""

import re

import pytest

from nbspam.server.spamd import RequestError, lesson_of, parse_head


def test_a_request_is_a_line_and_headers():
    found = parse_head(b"CHECK SPAMC/1.5\r\nUser:  ann \r\nContent-length: 12")

    assert found.command == "CHECK"
    assert found.version == (1, 5)
    assert found.headers == {"user": "ann", "content-length": "12"}
    assert found.length == 12
    assert not found.is_rspamd


def test_a_head_that_is_none_is_refused_with_the_reason():
    for head, reason in (
        (b"", "the first line is not COMMAND SPAMC/VERSION"),
        (b"CHECK SPAMC", "the first line is not COMMAND SPAMC/VERSION"),
        (b"check SPAMC/1.5", "the first line is not COMMAND SPAMC/VERSION"),
        (b"CHECK SPAMC/1.5 ", "the first line is not COMMAND SPAMC/VERSION"),
        (b"GET / HTTP/1.1", "the first line is not COMMAND SPAMC/VERSION"),
        (b"EXPLODE SPAMC/1.5", "unknown command EXPLODE"),
        (b"CHECK SPAMC/1.5\r\nno colon", "a header line is not NAME: VALUE"),
        (b"CHECK SPAMC/1.5\r\nUser: a\rb", "a header line is not NAME: VALUE"),
    ):
        with pytest.raises(RequestError, match=re.escape(reason)) as found:
            parse_head(head)

        assert found.value.status == 76


def test_set_and_remove_may_name_different_targets():
    lesson = lesson_of(
        parse_head(b"TELL SPAMC/1.5\nMessage-class: ham\nSet: local\nRemove: remote")
    )

    assert lesson == ("ham", "DidSet: local")
