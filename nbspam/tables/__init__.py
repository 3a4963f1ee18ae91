"""Tables: rows of typed columns instead of messages."""
