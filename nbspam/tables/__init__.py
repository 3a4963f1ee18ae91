"""Tables: rows of typed columns instead of messages.

Secret: a schema turns cells into category codes, numbers and intervals; models see only those.
"""
