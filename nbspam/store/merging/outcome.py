"""The outcome of merging: one model, and how many messages were in several of the files."""

from typing import NamedTuple

from nbspam.classifier.classifier import Classifier
from nbspam.tables.classifier import TableClassifier


class Merged(NamedTuple):
    """The sum of models, or of the parts of one training."""

    classifier: Classifier | TableClassifier
    n_added: int  # models or parts
    repeated: int = 0  # messages that several models knew, or that came again; they count once
    disputed: int = 0  # how many of these models knew as different classes
    is_training: bool = False  # whether parts were added
