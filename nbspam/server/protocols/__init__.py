"""The protocols, each in modules of its own.

Secret: how a mail system asks, and what it expects as an answer.
"""
