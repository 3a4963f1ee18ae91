"""The page, which shows people the server's counts and mailboxes.

Secret: how mail from strangers is shown, and how clicks become lessons.
"""
