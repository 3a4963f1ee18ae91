"""The command line: options, commands and output.

Secret: how options are spelt and results are printed.  Every command calls public functions of
the rooms below and prints the results.
"""
