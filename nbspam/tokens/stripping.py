"""Cutting off what tells the class without the text: headers, footers, quotes.

The rules are those that scikit-learn's 20 newsgroups data set made usual, so that figures can
be compared.  They know nothing of mail: headers end at the first empty line.

Secret: how each part is recognised.
"""

import re

_QUOTED = rb"^(?:In article|Quoted from|\||>)|writes in|(?:writes|wrote|says|said):"


def strip(data: bytes, parts: tuple[str, ...]) -> bytes:
    """Return a text without the parts named, which are among settings.STRIPPABLE."""
    if not parts:
        return data
    data = data.replace(b"\r\n", b"\n")
    for part, cut in _CUT.items():
        if part in parts:
            data = cut(data)
    return data


def _without_headers(data: bytes) -> bytes:
    """Return what follows the first empty line."""
    return data.partition(b"\n\n")[2]


def _without_footer(data: bytes) -> bytes:
    """Return what stands above the last line that is empty or a rule of dashes."""
    lines = data.strip().split(b"\n")
    for number in range(len(lines) - 1, 0, -1):
        if not lines[number].strip().strip(b"-"):
            return b"\n".join(lines[:number])
    return data


def _without_quotes(data: bytes) -> bytes:
    """Return the lines that neither quote nor say who is quoted."""
    quoted = re.compile(_QUOTED)
    return b"\n".join(line for line in data.split(b"\n") if not quoted.search(line))


# In the order in which they are cut off.
_CUT = {
    "headers": _without_headers,
    "footers": _without_footer,
    "quotes": _without_quotes,
}
