"""Models as text: what `nbspam export` writes, and what other filters write of theirs.

Secret: the forms of the lines, and which of our tokens correspond to those of others.
"""
