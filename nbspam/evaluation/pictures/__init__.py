"""Curves, drawn to a file or in a terminal."""
