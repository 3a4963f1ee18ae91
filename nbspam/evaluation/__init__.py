"""Evaluation: how good a model is.

Models answer held-out documents; from the answers come measures, comparisons, tuned cutoffs,
pictures, and pages in one file that need no network and no script.

Secret: every measure is computed from one `Trial`, however its answers were obtained.
"""
