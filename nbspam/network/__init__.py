"""Bayesian networks over coded tables: structure, inference, sampling, graphs."""
