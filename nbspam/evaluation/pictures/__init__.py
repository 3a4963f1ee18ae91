"""Pictures of a trial, drawn to a file or in a terminal.

Secret: how curves are drawn; both kinds of pictures draw the numbers that `curves` computes.
"""
