"""Tokens: what a token is, and how tokens are found without Python objects."""
