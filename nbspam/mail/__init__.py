"""Mail: one message, read into fields and written with headers.

A raw message becomes fields of text, each with its origin (body, subject, URL, ...).  A verdict
becomes header lines.

Secret: what mail looks like (headers, MIME, character sets, HTML), whether well-formed, broken by
accident or broken on purpose.
"""
