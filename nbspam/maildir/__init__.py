"""Maildir: what users of procmail, Maildir and Postfix run, `filter`, `sort` and `held`.

Secret: how a mail folder and a model are kept in step when a crash may come between any two steps.
"""
