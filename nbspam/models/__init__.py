"""Models: counts to probabilities, by scikit-learn's conventions."""
