"""Maildir: what users of procmail and Maildir run, `filter` and `sort`.

Secret: how a mail folder and a model are kept in step when a crash may come between any two steps.
"""
