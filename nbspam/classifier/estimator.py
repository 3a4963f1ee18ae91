"""The default pipeline as a scikit-learn estimator: texts or messages in, classes out.

Strings are read as text and bytes as mail.  A classifier names its classes by strings, so labels
of any type but ham and spam, for which it has its own fit, are replaced by numbered names in
training, and put back in answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nbspam.arrays import ArrayLike, Floats
from nbspam.classifier.training import learn_items
from nbspam.decision import HAM_AND_SPAM
from nbspam.models.base import Scored
from nbspam.models.inputs import DataError, UnfittedError, checked_labels
from nbspam.settings import SettingsChoices, as_options, naming_keywords, settings_for
from nbspam.sources.items import Item, item_of
from nbspam.verdicts import Answer, posterior


@dataclass(kw_only=True, eq=False, repr=False)
class TextClassifier(Scored):
    """The classifier of `nbspam train`, for texts (strings) or messages (bytes), as an estimator.

    Parameters are the options of `nbspam train`; None leaves a decision to the library.
    Attributes: classes_, the labels that have documents, (n_classes,); classifier_, which judges.

    >>> from nbspam import TextClassifier
    >>> texts = ["cheap pills", "pills now", "lunch on friday", "dinner on friday"]
    >>> TextClassifier().fit(texts, [1, 1, 0, 0]).predict(["cheap", "friday"]).tolist()
    [1, 0]
    """

    preset: str | None = None
    model: str | None = None
    alpha: float | str | None = None
    class_prior: str | tuple[float, ...] | None = None
    weighting: str | None = None
    pairs: bool | None = None
    characters: bool | None = None
    strip: tuple[str, ...] | None = None
    min_df: int | None = None
    max_features: int | None = None

    @naming_keywords()
    def fit(self, X: Iterable[str | bytes], y: ArrayLike) -> Self:
        """Learn texts or messages; y: (n_docs,) their labels.

        Raises DataError for other shapes and types and for fewer than two classes, and
        UsageError for parameters that do not fit.
        """
        documents = _checked(X, "fit")
        labels = checked_labels(y, len(documents), "TextClassifier.fit")
        classes, index = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError("TextClassifier.fit: fewer than two classes; give two or more")
        # Names in the order of the labels, so that columns of probabilities are, too.
        is_filter = classes.tolist() == list(HAM_AND_SPAM)
        names = HAM_AND_SPAM if is_filter else [f"{k:06}" for k in range(len(classes))]
        items = [
            item_of(data, str(number), names[k])
            for number, (data, k) in enumerate(zip(documents, index.tolist(), strict=True))
        ]
        settings, stream = settings_for(items, SettingsChoices(**as_options(self.get_params())))
        self.classifier_ = learn_items(stream, settings).classifier
        # A message that comes again moves to its last label, so a label may have none left.
        self.classes_ = classes[np.isin(names, self.classifier_.classes)]
        return self

    def predict_proba(self, X: Iterable[str | bytes]) -> Floats:
        """Return P(class given text), shape (n_docs, n_classes)."""
        return posterior(self.joint_log_proba_or_prior(X))

    def joint_log_proba_or_prior(self, X: Iterable[str | bytes]) -> Floats:
        """Return log P(class, text) in nats, shape (n_docs, n_classes)."""
        if not hasattr(self, "classifier_"):
            raise UnfittedError("TextClassifier.predict: not fitted yet; call fit first")
        items = [item_of(data, str(n)) for n, data in enumerate(_checked(X, "predict"))]
        answers = self.classifier_.answers(items)  # to all, for data in memory can be read
        joint = [answer.joint for answer in answers if isinstance(answer, Answer)]
        return np.reshape(joint, (len(items), len(self.classes_)))

    def _input_tags(self) -> dict[str, bool]:
        return {"one_d_array": True, "two_d_array": False, "string": True}


def _checked(X: Any, verb: str) -> list[str | bytes | Item]:
    """Return texts as a list; raises DataError."""
    if isinstance(X, str | bytes) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise DataError(
            f"TextClassifier.{verb}: Expected 1D array or list of texts, got {type(X).__name__};"
            ' give one column of texts, as in frame["text"]'
        )
    documents = list(X)
    for data in documents:
        if not isinstance(data, str | bytes):
            raise DataError(
                f"TextClassifier.{verb}: {type(data).__name__} is neither text nor mail;"
                " give str or bytes"
            )
    return documents
