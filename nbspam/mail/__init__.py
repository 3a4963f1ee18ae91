"""Mail: one message, read into fields and written with headers.

Secret: what mail looks like, well-formed, broken, or broken on purpose.
"""
