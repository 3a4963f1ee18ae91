"""What a model is trained with: a frozen value, stored in the model file.

Secret: the presets, that is, which decisions a user never has to take.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from nbspam.errors import UsageError
from nbspam.models.registry import FEATURES as FEATURES
from nbspam.models.registry import TOKEN_MODELS

MODELS = (*TOKEN_MODELS, *FEATURES)  # of messages, by name
READINGS = ("mail", "text", "latin1")
STRIPPABLE = ("headers", "footers", "quotes")  # parts of a text, in the order they are cut off
PRESENCE, COUNTS, UNIT_LENGTH, TF_IDF = "presence", "counts", "unit-length", "tf-idf"
LOG_LENGTH = "log-length"  # 1 + ln count; every group of a document scaled to unit length
WEIGHTINGS = (PRESENCE, COUNTS, UNIT_LENGTH, LOG_LENGTH, TF_IDF)


class TokenSettings(NamedTuple):
    """What a token is: stored in the model, so that it always means the same."""

    punctuation: str = "$'-_!"  # ASCII characters, beside letters and digits, that words hold
    min_length: int = 1  # characters
    max_length: int = 40  # bytes
    pairs: bool = False  # also every two neighbouring words of a field
    raw: bool = False  # the text is cut as it is, without normalisation
    characters: bool = False  # also runs of characters of what is written


@dataclass(frozen=True, slots=True)
class Settings:
    """How items become tokens, tokens counts, and counts probabilities."""

    tokens: TokenSettings = field(default_factory=TokenSettings)
    reading: str = "mail"  # mail; text; latin1 (the whole file, byte by byte a letter)
    weighting: str = PRESENCE
    model: str = "multinomial"
    alpha: float | str = 0.01  # Lidstone's addend, or "auto": chosen from the counts
    class_prior: str | tuple[float, ...] = "estimated"  # or "uniform", or given
    min_df: int = 1
    max_features: int | None = None
    # Groups of evidence weighed, not summed: of two classes combined (combining.py), of
    # more blended (blending.py).
    combine: bool = False
    strip: tuple[str, ...] = ()  # parts of a text that are cut off before it is read
    parameters: Mapping[str, Any] = field(default_factory=dict)  # more, of a model of FEATURES

    def __post_init__(self) -> None:
        for part in self.strip:
            if part not in STRIPPABLE:
                raise UsageError(f"--strip {part}: none of {', '.join(STRIPPABLE)}; name those")
        for value, allowed, what in (
            (self.reading, READINGS, "reading"),
            (self.weighting, WEIGHTINGS, "weighting"),
            (self.model, MODELS, "model"),
        ):
            if value not in allowed:
                raise UsageError(f"{what}: {value!r} is none of {', '.join(allowed)}")
        if self.weighting == TF_IDF and self.model == "bernoulli":
            raise UsageError(
                "weighting: tf-idf is for models that count, Bernoulli sees presence only;"
                " give another model, or --weighting presence"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        values = {**asdict(self), "tokens": self.tokens._asdict()}
        if not self.parameters:
            del values["parameters"]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @property
    def is_mail_combined(self) -> bool:
        """Whether probabilities are honest and mail is lost by mistakes, which so cost."""
        return self.combine and self.reading == "mail"


def settings_from_dict(values: dict[str, Any]) -> Settings:
    """Return the settings a model file holds; the inverse of `to_dict`."""
    prior = values["class_prior"]
    return Settings(
        **{
            **values,
            "tokens": TokenSettings(**values["tokens"]),
            "class_prior": tuple(prior) if isinstance(prior, list) else prior,
            "strip": tuple(values.get("strip", ())),  # older files have none
        }
    )


# The tutorial of scikit-learn's 20 newsgroups example: every file as Latin-1 text, words
# of two or more word characters, counts scaled to unit length, Laplace's alpha.
_TUTORIAL = Settings(
    TokenSettings(punctuation="_", min_length=2, max_length=4096, raw=True),
    reading="latin1",
    weighting=UNIT_LENGTH,
    alpha=1.0,
)
_WRITTEN = TokenSettings(punctuation="_", pairs=True)
# For two classes, whose evidence is combined from presence.  E-002, E-020.
PRESETS = {
    "mail": Settings(model="complement", alpha=0.1, combine=True),
    "text": Settings(_WRITTEN._replace(characters=True), reading="text", alpha=0.1, combine=True),
    "tutorial": _TUTORIAL,
}
# For more: long messages would outweigh short ones, were they not scaled.  E-024.
MANY = {
    "mail": Settings(weighting=LOG_LENGTH, combine=True),
    "text": Settings(_WRITTEN, reading="text", weighting=LOG_LENGTH, combine=True),
}
# For a model that is asked for by name, and sums its evidence.  E-004.
PLAIN = {
    "mail": Settings(model="complement", alpha=0.1),
    "text": Settings(reading="text", weighting=COUNTS, alpha=0.1),
}
