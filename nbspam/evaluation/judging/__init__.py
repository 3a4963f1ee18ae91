"""Judging: answers of models to labelled documents that they have not learned.

Secret: which model answers which document.
"""
