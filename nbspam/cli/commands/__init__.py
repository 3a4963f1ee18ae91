"""The commands, one module each.

Secret: `cli.main` imports a command's module only when that command is run.
"""
