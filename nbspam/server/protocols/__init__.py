"""One module for each protocol.

Secret: how a mail system asks, and what it expects as an answer.
"""
