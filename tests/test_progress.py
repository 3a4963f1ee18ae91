"""Loops that may be watched."""

from nbspam.printing import Extent, tracked, watched


def test_whoever_watches_gets_the_things_their_name_and_their_number():
    things = [1, 2]
    assert tracked(things, "things") is things

    seen = []

    def watch(things, what, extent):
        for thing in things:
            seen.append((what, extent.total(), thing))
            yield thing

    with watched(watch):
        assert list(tracked([7, 8], "numbers")) == [7, 8]
        assert list(tracked(iter("a"), "letters")) == ["a"]
        assert list(tracked(iter("b"), "letters", 5)) == ["b"]
        assert list(tracked(iter("c"), "letters", Extent(lambda: 6))) == ["c"]
    assert list(tracked([9], "numbers")) == [9]

    assert seen == [
        ("numbers", 2, 7),
        ("numbers", 2, 8),
        ("letters", None, "a"),
        ("letters", 5, "b"),
        ("letters", 6, "c"),
    ]
