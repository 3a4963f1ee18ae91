"""Sharing: servers learn from each other's lessons.

Secret: the log that they share, and how a host's own lessons are put into the log's order.
"""
