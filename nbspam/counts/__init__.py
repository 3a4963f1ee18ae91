"""Counts: all that training remembers; all of it adds."""
