"""The page on which people look at what the server does, and at mailboxes.

Secret: how mail from strangers is shown, and how clicks become lessons.
"""
