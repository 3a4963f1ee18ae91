"""The parts of a message: which of them are text, which are shown, and how much of each is read.

Secret: the structure of mail, and what is left out of a message that is too long.
"""
