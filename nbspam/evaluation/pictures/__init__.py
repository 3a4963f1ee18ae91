"""Pictures of a trial, drawn to a file or in a terminal.

Secret: both draw the same numbers, which `curves` computes.
"""
