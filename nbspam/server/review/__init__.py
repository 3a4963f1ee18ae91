"""The page on which people look at what the server does, and at mailboxes.

Secret: who may see it, how it looks, and what it remembers.
"""
