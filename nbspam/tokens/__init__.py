"""Tokens: their definition, and how the tokens of messages are found and named.

`definition` defines tokens in plain Python; `tokenizer` finds the same tokens in a batch of
messages at once.  The room returns `Documents` (which tokens occur in which documents) and a
`Vocabulary` (the keys and texts of tokens).

Secret: tokens are found, hashed and counted without a Python object for each of them.
"""
