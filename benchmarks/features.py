"""Compare the defaults with variations: kinds of evidence left out, or cut into other tokens.

usage: python benchmarks/features.py CORPUS... [--folds 5] [--seed 0] [--only TEXT]

Each corpus is read once.  A variation changes its messages, or how they are cut into tokens, or
drops tokens afterwards.  One line is printed per variation: its name, the changes of four
measures, and in how many folds it won, tied and lost against the defaults.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from nbspam.counts.corpus import Corpus
from nbspam.evaluation.comparison import Comparison, compare
from nbspam.evaluation.judging.held_out import fold_trial
from nbspam.mail.message import Message, by_header
from nbspam.mail.origins import Field
from nbspam.settings import PRESETS, Settings
from nbspam.sources.items import read_items
from nbspam.tokens.documents import united
from nbspam.tokens.reading import ReadToLearn, read_to_learn
from nbspam.tokens.tokenizer import batches, tokenize
from nbspam.tokens.vocabulary import batch_vocabulary, join

Change = Callable[[Message], Message]
ROUTE = ("received", "message-id", "return-path", "date", "mailer", "list", "header")
# Tokens are dropped by origin, the text before their colon.
ORIGINS = {
    "without received": ("received",),
    "without message-id": ("message-id",),
    "without return-path": ("return-path",),
    "without date": ("date",),
    "without mailer": ("mailer",),
    "without list": ("list",),
    "without names of headers": ("header",),
    "without the whole route": ROUTE,
    "without from": ("from", "reply-to"),
    "without to": ("to",),
    "without subject": ("subject",),
    "without links": ("url",),
    "without HTML facts": ("html",),
    "without hidden text": ("hidden", "alt"),
    "without attachments' names": ("filename",),
    "without MIME": ("mime",),
    "without defects": ("defect",),
}

# The measures that are shown, each with its number of decimal digits.
COLUMNS = {"errors": 0, "false positives": 0, "(1-AUC) %": 4, "log loss": 4}


def read(path: str, settings: Settings) -> ReadToLearn:
    """Return the labelled messages of a corpus."""
    return read_to_learn(read_items([path]), settings)


def cut(read: ReadToLearn, settings: Settings, change: Change | None = None) -> Corpus:
    """Return messages, each changed if there is a change, as a corpus of token counts."""
    messages = read.messages if change is None else map(change, read.messages)
    cut_batches = [
        tokenize(group, settings.tokens) for group in batches(messages, settings.tokens)
    ]
    vocabulary, _ = join([batch_vocabulary(batch) for batch in cut_batches])
    documents = united([batch.documents for batch in cut_batches])
    classes, y = np.unique(read.labels, return_inverse=True)
    return Corpus(
        tuple(item.name for item in read.items),
        tuple(classes.tolist()),
        y,
        np.array(read.digests, np.uint64),
        vocabulary,
        documents._replace(tokens=np.arange(len(vocabulary))),
    )


def origins(data: Corpus) -> np.ndarray:
    """Return the origin of every column, which is the text before the colon, or empty."""
    texts = (data.vocabulary.text(column) for column in range(len(data.vocabulary)))
    return np.array([text.rpartition(":")[0] for text in texts])


def without(data: Corpus, dropped: np.ndarray) -> Corpus:
    """Return the corpus without some columns; dropped: (n_features,) a mask."""
    keep = np.flatnonzero(~dropped)
    names = np.full(len(dropped), -1)
    names[keep] = np.arange(len(keep))
    documents = data.documents.on(names).over(np.arange(len(keep)))
    return replace(data, vocabulary=data.vocabulary.take(keep), documents=documents)


def on_fields(change: Callable[[Field], list[Field]]) -> Change:
    """Return the change of messages that changes each of their fields."""
    return lambda m: Message(
        tuple(f for field in by_header(m.fields) for f in change(field)), m.defects
    )


def _shouting(field: Field) -> list[Field]:
    found = re.findall(rb"\b[A-Z]{3,}\b", field.text)
    # This origin belongs to the group of texts, so the words count as text.
    return [field, Field("nested", b" ".join(b"shouted_" + word for word in found))]


def _case(field: Field) -> list[Field]:
    """Mark capitalised words, so that they stay different when case is folded."""
    return [Field(field.origin, re.sub(rb"\b([A-Z][\w']*)", rb"\1_c", field.text))]


def _untagged(*names: str) -> Change:
    return on_fields(lambda field: [Field("body", field.text) if field.origin in names else field])


def _also_untagged(*names: str) -> Change:
    return on_fields(
        lambda field: [field, *([Field("body", field.text)] if field.origin in names else [])]
    )


def _domains(field: Field) -> list[Field]:
    """Add every suffix of a sender's domain as one word: example.org, org."""
    if field.origin not in ("from", "reply-to", "return-path"):
        return [field]
    labels = [found.lower().split(b".") for found in re.findall(rb"@([\w.-]+)", field.text)]
    ends = [b"_".join(each[i:]) for each in labels for i in range(len(each))]
    return [field, Field(field.origin, b" ".join(b"at_" + end for end in ends))]


def _hosts(field: Field) -> list[Field]:
    """Keep only the host of every link."""
    if field.origin != "url":
        return [field]
    return [Field("url", b" ".join(re.findall(rb"//([^/?#\s]+)", field.text)))]


def _whole_hosts(field: Field) -> list[Field]:
    """Add each link's host as one word, and its last two labels as another."""
    if field.origin != "url":
        return [field]
    hosts = [host.lower().split(b".") for host in re.findall(rb"//([\w.-]+)", field.text)]
    whole = b" ".join(b"_".join(host[at:]) for host in hosts for at in (0, -2))
    return [field, Field("url", whole)]


def _skip_pairs(field: Field) -> list[Field]:
    if field.origin not in ("body", "subject"):
        return [field]
    words = field.text.lower().split()
    skipped = [b"_".join(pair) for pair in zip(words, words[2:], strict=False)]
    return [field, Field("nested", b" ".join(skipped))]


def _single_characters(field: Field) -> list[Field]:
    text = field.text.decode("utf-8", "replace")
    return [Field(field.origin, re.sub("([\u3040-\u30ff\u4e00-\u9fff])", r" \1 ", text).encode())]


def _currencies(field: Field) -> list[Field]:
    """Replace currency signs by dollar signs, which belong to words."""
    text = re.sub("[£€¥₤]", "$$", field.text.decode("utf-8", "replace"))
    return [Field(field.origin, text.encode())]


def _signs(field: Field) -> list[Field]:
    """Replace every sign outside ASCII by its number, which belongs to words."""
    text = field.text.decode("utf-8", "replace")
    spelt = re.sub(r"[^\w\s\x00-\x7f]", lambda sign: f"_{ord(sign[0]):x}", text)
    return [Field(field.origin, spelt.encode())]


CHANGES: dict[str, Change] = {
    "with currency signs": on_fields(_currencies),
    "with all signs": on_fields(_signs),
    "with shouted words": on_fields(_shouting),
    "with case kept": on_fields(_case),
    "with skip pairs": on_fields(_skip_pairs),
    "subject as body": _untagged("subject"),
    "from, to as body": _untagged("from", "reply-to", "to"),
    "subject also as body": _also_untagged("subject"),
    "from, to also as body": _also_untagged("from", "reply-to", "to"),
    "with senders' domains": on_fields(_domains),
    "hosts of links only": on_fields(_hosts),
    "hosts of links whole too": on_fields(_whole_hosts),
    "links as body": _untagged("url"),
    "Chinese by characters": on_fields(_single_characters),
}


def token_variations(settings: Settings) -> dict[str, Settings]:
    """Return settings that cut messages into other tokens, by name."""
    tokens = settings.tokens
    made = {
        "with pairs": tokens._replace(pairs=True),
        "not normalised": tokens._replace(raw=True),
        "no punctuation": tokens._replace(punctuation=""),
        "with . and @ in words": tokens._replace(punctuation="$'-_!.@"),
        "two characters or more": tokens._replace(min_length=2),
        "three characters or more": tokens._replace(min_length=3),
        "at most 12 bytes": tokens._replace(max_length=12),
        "at most 20 bytes": tokens._replace(max_length=20),
        "at most 80 bytes": tokens._replace(max_length=80),
    }
    return {name: replace(settings, tokens=each) for name, each in made.items()}


def weight_variations(settings: Settings) -> dict[str, Settings]:
    """Return settings with other weightings, if the settings sum the evidence."""
    if settings.combine:
        return {}
    return {name: replace(settings, weighting=name) for name in ("presence", "unit-length")}


def line(name: str, result: Comparison) -> str:
    """Return the line of one variation."""
    by_name = {each.name: each for each in result.differences}
    shown = ""
    for key, digits in COLUMNS.items():
        if key in by_name:
            _, _, value, won, tied, lost = by_name[key]
            shown += f"{value:>9.{digits}f} {won}-{tied}-{lost}"
    return f"{name:27}{shown}"


def heading(result: Comparison) -> str:
    """Return the names of the measures, and the values of the defaults."""
    defaults = {each.name: each.first for each in result.differences if each.name in COLUMNS}
    names = "".join(f"{name[:14]:>15}" for name in defaults)
    values = "".join(f"{value:>9.{COLUMNS[name]}f}      " for name, value in defaults.items())
    return f"{'':27}{names}\n{'the defaults':27}{values}"


def variations(
    read: ReadToLearn, settings: Settings, only: str
) -> Iterator[tuple[str, Corpus, Settings]]:
    """Yield the name, corpus and settings of every variation whose name contains `only`."""
    data = cut(read, settings)
    origin = origins(data)
    for name, dropped in ORIGINS.items():
        which = np.isin(origin, dropped)
        if only in name and which.any():
            yield name, without(data, which), settings
    for name, change in CHANGES.items():
        if only in name:
            yield name, cut(read, settings, change), settings
    for name, other in token_variations(settings).items():
        if only in name:
            yield name, cut(read, other), other
    for name, other in weight_variations(settings).items():
        if only in name:
            yield name, data, other


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", help="folder of ham/ and spam/")
    parser.add_argument("--folds", type=int, default=5, help="number of folds  [default: 5]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds  [default: 0]")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="run only variations whose name contains TEXT"
    )
    options = parser.parse_args()
    for path in options.corpora:
        is_text = next(iter(read_items([path]))).is_text
        settings = PRESETS["text" if is_text else "mail"]
        found = read(path, settings)
        base = fold_trial(cut(found, settings), settings, options.folds, options.seed)
        print(f"{path}: {len(found.items)} documents, {options.folds} folds, seed {options.seed}")
        print(heading(compare(base, base)))
        for name, data, other in variations(found, settings, options.only):
            trial = fold_trial(data, other, options.folds, options.seed)
            print(line(name, compare(base, trial)), flush=True)


if __name__ == "__main__":
    main()
