"""Mail: the shape of one message, read and written.

A raw message becomes fields of text, each with its origin (body, subject, URL, ...); a verdict
becomes header lines; a Maildir's files can be listed and moved.

Secret: headers, MIME, character sets and HTML; other rooms see only `Message` and its fields.
"""
