"""Personal models: what one user has taught, on top of a model that many users share.

Secret: how much a user's messages count, and how those of many users are judged in one pass.
"""
