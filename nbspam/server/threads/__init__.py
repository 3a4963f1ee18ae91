"""The threads of a worker: one judges the messages that wait, another one learns them.

Secret: how messages get from the event loop to a thread, and results back.
"""
