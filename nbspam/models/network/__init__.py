"""Bayesian networks: structure search, inference, sampling, and a classifier.

Secret: the algorithms on graphs and tables; callers see a `Network` and its probabilities.
"""
