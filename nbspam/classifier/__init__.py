"""The classifier: counts of messages become verdicts on other messages.

A `Classifier` holds settings, counts, and a fit that says how the evidence of tokens adds up.
There is one way to fit (`training.fitted_evidence`), one way to answer (`Classifier.joint_of`) and
one way to learn message by message (`training.Learner`).

Secret: how the dependence between tokens is corrected, so that probabilities are calibrated.
"""
