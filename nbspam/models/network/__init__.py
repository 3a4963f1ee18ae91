"""Bayesian networks: structure, search, inference and sampling."""
