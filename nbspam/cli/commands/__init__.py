"""One module for each command: its options, one call of the library, its output."""
