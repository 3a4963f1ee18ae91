"""Sources: reading stored mail, texts and tables.

Secret: how they are stored, and how the formats (Maildir, mbox, CSV, JSON lines, ...) are
recognised; the other rooms see items and records.
"""
