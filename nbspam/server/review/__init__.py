"""The page on which people look at what the server does.

Secret: who may see it, and how it looks.
"""
