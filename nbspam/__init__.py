"""nbspam: spam and text classification with naive Bayes and its family."""

__version__ = "0.1.0"
