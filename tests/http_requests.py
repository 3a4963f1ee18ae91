"""Requests of HTTP as bytes, and answers taken apart."""

from support import SPAM


def post(path, data=SPAM, *lines, version="1.1"):
    head = [f"POST {path} HTTP/{version}", "Host: localhost", f"Content-Length: {len(data)}"]
    return "\r\n".join([*head, *lines, "", ""]).encode() + data


def get(path, *lines, version="1.1"):
    return "\r\n".join([f"GET {path} HTTP/{version}", "Host: localhost", *lines, "", ""]).encode()


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
