"""How good a model is: held-out answers, measures, comparisons, tuned cutoffs, pictures.

Secret: every measure is computed from one `Trial`, however its answers were obtained.
"""
