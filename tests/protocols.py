"""Requests of each protocol as bytes, and answers taken apart."""

import re
import struct

from support import SPAM

# ---- spamd ----


def check(data, command="CHECK", version="1.5", *lines):
    head = [f"{command} SPAMC/{version}", f"Content-length: {len(data)}", *lines, "", ""]
    return "\r\n".join(head).encode() + data


def tell(label, data=SPAM, *lines):
    """Return a lesson; label: "" for none."""
    named = [f"Message-class: {label}"] * bool(label)
    return check(data, "TELL", "1.5", *named, *(lines or ["Set: local"]))


# ---- HTTP ----


def get(path, *lines, version="1.1"):
    return "\r\n".join([f"GET {path} HTTP/{version}", "Host: localhost", *lines, "", ""]).encode()


def post(path, data=SPAM, *lines):
    head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}"]
    return "\r\n".join([*head, *lines, "", ""]).encode() + data


def parsed(answer):
    """Return (status, headers, body) of each answer in a row."""
    found = []
    while answer:
        head, _, rest = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers["content-length"])
        found.append((int(first.split()[1]), headers, rest[:length]))
        answer = rest[length:]
    return found


# ---- milter ----


def packet(command, data=b""):
    """Return a packet: its length, big-endian, a command, data."""
    return struct.pack(">I", 1 + len(data)) + command + data


def offer(version=6, actions=0x1FF, steps=0x1FFFFF):
    """Return an offer; actions that are allowed, and steps that can be left out: Postfix's."""
    return packet(b"O", struct.pack(">III", version, actions, steps))


OFFER = offer()


def milter_parts(message):
    """Return the headers, names and values, and the body, as a mail system sends them."""
    head, _, body = message.partition(b"\n\n")
    lines = re.split(rb"\n(?![ \t])", head)
    return [line.partition(b":")[::2] for line in lines], body


def milter_mail(message=SPAM, *headers, to=(b"<c@d.example>",), end=True):
    """Return a message as a mail system sends it.

    headers: further ones, names and values.  to: its recipients.
    """
    pairs, body = milter_parts(message)
    pieces = [
        packet(b"D", b"Mi\0" + b"4XyZ\0{mail_addr}\0a@b.example\0"),
        packet(b"M", b"<a@b.example>\0"),
        *(packet(b"R", address + b"\0NOTIFY=NEVER\0") for address in to),
        *(packet(b"L", name + b"\0" + value + b"\0") for name, value in (*pairs, *headers)),
        packet(b"N"),
        *(packet(b"B", body[at : at + 65_535]) for at in range(0, len(body), 65_535)),
    ]
    return b"".join(pieces) + packet(b"E") * end


def packets(answer):
    found = []
    while answer:
        (length,) = struct.unpack_from(">I", answer)
        found.append((answer[4:5], answer[5 : 4 + length]))
        answer = answer[4 + length :]
    return found
