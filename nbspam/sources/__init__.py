"""Sources: reading stored mail, texts and tables.

Secret: how they are stored; the other rooms see items and records, never files or streams.
"""
