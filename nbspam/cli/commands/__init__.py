"""The commands, one module each: its options, one call of the library, its output.

Secret: `cli.main` imports a command's module only when that command is run.
"""
