"""The room of sharing: how servers learn from each other's lessons.

Its secret: the log that they share, and how a host's own lessons take the order of the log.
"""
