"""Evaluation: how good a model is."""
