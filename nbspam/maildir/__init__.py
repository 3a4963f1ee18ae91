"""Maildir: what users of procmail and of a Maildir run: sort, and filter.

Secret: how a mail folder and a model are kept in step when a crash may come between any two steps.
"""
