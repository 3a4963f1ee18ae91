"""Small models of every kind as the code of commit 70bdb2f writes them, with what they answer.

Evidence for a reorganisation: model files and journals of then must still open afterwards.
Run with the OLD code, whose corpora are taken too:

    cd OLD && PYTHONPATH=OLD python make_models.py [FOLDER]

FOLDER (default: `models` beside this script) is emptied and written anew; the same code
gives the same bytes.  Days are fixed, names are relative, models are trained by the command
line in this process, changes are made by the functions of `nbspam.living`.
"""

import csv
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

TRAINED = 20000  # the day on which every model is trained, from 1970-01-01
TODAY = TRAINED

import nbspam.commands.arguments as arguments_module

arguments_module.today = lambda: TODAY  # before any command has imported it

import click.testing
import numpy as np
from nbspam.answers import posterior
from nbspam.loading import load
from nbspam.modelfile import load_state, locked, read_snapshot
from nbspam.records import read_records

import nbspam
from nbspam import journal as journal_module
from nbspam import living
from nbspam.classifier import Classifier, write
from nbspam.cli import cli
from nbspam.errors import NbspamError
from nbspam.sources import Item, Skipped

COMMIT = "70bdb2f"
CORPORA = Path(nbspam.__file__).resolve().parent.parent / "corpora"
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "models").resolve()
WATERMELON = "watermelon-3.0.csv"
NUMBERS = "watermelon-numbers.csv"
TARGET = "好瓜"
RUNNER = click.testing.CliRunner()

# ---- messages ----


def mail(label: str, *numbers: int) -> list[str]:
    """Return the paths, relative to corpora/mail, of messages by number."""
    found = []
    for number in numbers:
        (path,) = sorted((CORPORA / "mail" / label).glob(f"{number:03}-*.eml"))
        found.append(f"{label}/{path.name}")
    return found


def ham(*numbers: int) -> list[str]:
    return mail("ham", *numbers)


def spam(*numbers: int) -> list[str]:
    return mail("spam", *numbers)


FORTY_HAM = ham(39, 100, 77, 81, 6, 30, 70, 37, 63, 65, 98, 91, 95, 38, 28, 79, 1, 88, 96, 44)
FORTY_SPAM = spam(49, 50, 10, 82, 35, 60, 90, 88, 70, 68, 69, 91, 92, 67, 17, 89, 29, 21, 66, 48)
FEW_HAM = ham(6, 28, 79, 1, 88, 96, 44, 91)
FEW_SPAM = spam(10, 60, 69, 91, 92, 67, 17, 89)
OTHER_HAM = ham(39, 77, 30, 70, 98, 95)
OTHER_SPAM = spam(49, 82, 90, 88, 66, 48)
MANY = {
    "junk": spam(60, 10, 17, 69, 92, 89),
    "order": ham(28, 96, 86, 14, 69, 74),
    "private": ham(6, 1, 91, 73, 39, 77),
    "work": ham(30, 79, 89, 18, 40, 87),
}
# Never learned by any model here.
ASKED = [*ham(2, 80, 82, 57), *spam(5, 55, 31, 7)]

# ---- texts: written for this ----

TEXTS = [
    ("garden", "The roses need water before noon, and the beds want weeding."),
    ("garden", "Sow the beans in May, once the soil is warm."),
    ("garden", "Slugs ate the lettuce again; I put out beer traps."),
    ("garden", "Prune the apple tree in winter, never in spring."),
    ("garden", "The compost is warm and smells of earth."),
    ("garden", "Who borrowed the wheelbarrow? The shed door was open."),
    ("garden", "Tomatoes want sun, water and a stake to climb."),
    ("garden", "Wir gießen die Beete früh, die Bohnen zuerst."),
    ("garden", "Frost tonight: cover the dahlias with straw."),
    ("garden", "The hedge is cut, the lawn is mown, the tea is ready."),
    ("garden", "Water, water, water: the beds are dry, dry, dry."),
    ("garden", "园子里的玫瑰开了，早上浇水。"),
    ("garden", "Bees love the lavender by the shed."),
    ("garden", "ok"),
    ("garden", "ok"),
    ("billing", "Your invoice of 14.90 is due on the first of May."),
    ("billing", "We could not charge your card; please pay the invoice."),
    ("billing", "The refund of 20.00 is on its way to your account."),
    ("billing", "Payment received, thank you. Invoice 4711 is settled."),
    ("billing", "Second reminder: invoice 4712 has not been paid."),
    ("billing", "Your card ends in 0042 and expires in May."),
    ("billing", "Die Rechnung 4713 über 30,00 € ist fällig."),
    ("billing", "A late fee of 5.00 was added to your account."),
    ("billing", "Please update your card before the next payment."),
    ("billing", "The account was charged twice; here is the refund."),
    ("billing", "Direct debit: 12.00 will be taken from your account."),
    ("billing", "您的发票已付款，谢谢。"),
    ("billing", "Pay pay pay: three invoices, three reminders, no payment."),
    ("billing", "The discount ends on Friday, the invoice stays the same."),
    ("billing", "ok then"),
]
# A third class: of two, complement naive Bayes says what the multinomial one says.
KITCHEN = [
    ("kitchen", "Soak the beans overnight and boil them with salt."),
    ("kitchen", "Who took the big pan? The soup needs water and salt."),
    ("kitchen", "Bake the apple pie until the crust is brown."),
    ("kitchen", "Knead, knead, knead: the dough wants ten minutes."),
    ("kitchen", "Der Teig ist warm und riecht nach Hefe."),
    ("kitchen", "The tea is ready, the bread is not."),
    ("kitchen", "ok, ten minutes more"),
]
NEW_TEXTS = [
    ("garden", "The pumpkins outgrew the wheelbarrow, said the head gardener."),
    ("billing", "Your subscription renews on Friday for 9.99 a month."),
    ("billing", "Water charges: the invoice for the garden tap is due."),
    ("garden", "Mulch mulch mulch, and then more mulch on the rhubarb."),
]
ASKED_TEXTS = [
    "The beans are up and want water.",
    "Please pay the invoice before Friday.",
    "Rechnung für die Bohnen",
    "玫瑰 发票",
    "ok, thanks",
    "A word unheard of",
    "",
    "Payment for compost and straw: the invoice is in the shed, pay, pay, pay.",
]

# ---- changes ----

Change = dict[str, Any]


def learned(label: str, *what: str, day: int) -> list[Change]:
    return [{"do": "learn", "class": label, "what": each, "day": day} for each in what]


def relabelled(label: str, *what: str, day: int) -> list[Change]:
    return [{"do": "relabel", "class": label, "what": each, "day": day} for each in what]


def unlearned(*what: str, day: int) -> list[Change]:
    return [{"do": "unlearn", "what": each, "day": day} for each in what]


# All that can befall a message, of the file and of the journal.
MAIL_CHANGES = [
    *learned("ham", *ham(27, 74), day=20001),
    *learned("spam", *spam(77, 94), day=20001),
    *relabelled("spam", *ham(1), day=20002),  # of the file
    *unlearned(*spam(60), day=20003),  # of the file
    *learned("ham", *ham(28), day=20003),  # known already: no record
    *unlearned(*ham(49), day=20003),  # never known: no record
    *relabelled("ham", *spam(94), day=20004),  # of the journal
    *learned("ham", *ham(14), day=20004),
    *unlearned(*ham(14), day=20005),  # of the journal
    *unlearned(*ham(79), day=20005),  # of the file ...
    *learned("ham", *ham(79), day=20006),  # ... and back
]
FEW_CHANGES = [
    *learned("ham", *ham(27), day=20001),
    *relabelled("spam", *ham(1), day=20002),
    *unlearned(*spam(60), day=20003),
    *learned("spam", *spam(77), day=20004),
]
TEXT_CHANGES = [
    *learned("garden", NEW_TEXTS[0][1], day=20001),
    *learned("billing", NEW_TEXTS[1][1], NEW_TEXTS[2][1], day=20001),
    *relabelled("garden", TEXTS[28][1], day=20002),  # of the file
    *unlearned(TEXTS[10][1], day=20003),  # of the file
    *unlearned("ok", day=20003),  # the first of two
    *learned("billing", NEW_TEXTS[3][1], day=20004),
    *relabelled("garden", NEW_TEXTS[3][1], day=20005),  # of the journal
    *relabelled("garden", NEW_TEXTS[2][1], day=20005),  # of the journal
    *relabelled("billing", NEW_TEXTS[2][1], day=20006),  # and back
]
MANY_CHANGES = [
    *learned("order", *ham(22), day=20001),
    *learned("private", *ham(27), day=20001),
    *relabelled("private", *ham(89), day=20002),  # of the file
    *unlearned(*spam(10), day=20003),  # of the file
    *learned("work", *ham(58), day=20004),
    *relabelled("junk", *ham(58), day=20005),  # of the journal
    *learned("junk", *spam(77), day=20006),
]


def make_changes(path: str, changes: list[Change]) -> list[dict[str, int]]:
    """Learn, move and un-learn one by one; return what became of each."""
    done = []
    for change in changes:
        what, day = change["what"], change["day"]
        is_mail = what.endswith(".eml")
        item = Item(
            what, change.get("class"), *((None, False) if is_mail else (_bytes(what), True))
        )
        if change["do"] == "unlearn":
            outcome = living.unlearn(path, [item], day=day)
        elif change["do"] == "relabel":
            outcome = living.relabel(path, [item], change["class"], day=day)
        else:
            outcome = living.learn(path, [item], day=day)
        assert not outcome.skipped and not outcome.notes, outcome
        names = ("learned", "already_known", "moved", "unlearned", "unknown")
        done.append({name: getattr(outcome, name) for name in names if getattr(outcome, name)})
    return done


def _bytes(text: str) -> bytes:
    return text.encode("utf-8")


# ---- the command line, in this process ----


def run(*words: str, day: int = TRAINED, stdin: bytes | None = None) -> bytes:
    """Run a command on a day; return what it prints."""
    global TODAY
    TODAY = day
    result = RUNNER.invoke(cli, list(words), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, (words, result.output)
    return result.stdout_bytes


def sources(**classes: list[str]) -> list[str]:
    """Return the words that name messages and their classes."""
    words = []
    for name, paths in classes.items():
        for path in paths:
            words += (
                [f"--{name}", path] if name in ("ham", "spam") else ["--label", f"{name}={path}"]
            )
    return words


def with_path(words: list[str], path: str) -> list[str]:
    """Return a command line with the model's path in the place of MODEL."""
    return [path if word == "MODEL" else word for word in words]


# ---- what a model says ----


def questions(model: Any, asked: dict[str, Any]) -> list[Any]:
    if "rows" in asked:
        records = list(read_records([asked["table"]], None, model.schema.names))
        return [records[row - 1] for row in asked["rows"]]
    if "texts" in asked:
        return [Item(f"text {n}", None, _bytes(t), True) for n, t in enumerate(asked["texts"], 1)]
    return [Item(path, None) for path in asked["mail"]]


def answers(model: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Return counts and answers of a model."""
    items = questions(model, asked)
    found = list(model.answers(items))
    assert not any(isinstance(answer, Skipped) for answer in found), found
    verdicts = list(model.classify(items))
    shares = posterior(np.stack([answer.joint for answer in found]))
    rows = []
    for verdict, share in zip(verdicts, shares.tolist(), strict=True):
        assert list(verdict.posterior.values()) == share
        row: dict[str, Any] = {"posterior": verdict.posterior, "label": verdict.label}
        if verdict.score is not None:
            row["score"] = verdict.score
        rows.append(row)
    if hasattr(model, "schema"):
        counts = dict(zip(model.classes, map(float, model.model.class_count_), strict=True))
        return {"class_count": counts, "answers": rows}
    table = model.table
    counts = dict(zip(table.classes, table.class_count.tolist(), strict=True))
    return {"class_count": counts, "tokens": len(table.vocabulary), "answers": rows}


def dump_of(path: str) -> dict[str, Any]:
    """Return what `nbspam dump` prints of a model and its journal, by its checksums."""
    printed = run("dump", path)
    lines = printed.splitlines(keepends=True)
    tokens = [line for line in lines[1:] if line.startswith(b'{"token"')]
    messages = [line for line in lines[1:] if line.startswith(b'{"message"')]
    assert len(lines) == 1 + len(tokens) + len(messages)
    return {
        "lines": len(lines),
        "sha256": sha256(printed),
        "settings_sha256": sha256(lines[0]),
        "tokens_sha256": sha256(b"".join(tokens)),
        "messages_sha256": sha256(b"".join(messages)),
        "settings": json.loads(lines[0]),
    }


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def explained(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return what `nbspam explain --json` says of the first message."""
    if "mail" in asked:
        what = asked["mail"][0]
        result = run("explain", "-m", path, "--json", what)
        return {
            "arguments": ["explain", "-m", "MODEL", "--json", what],
            "result": json.loads(result),
        }
    what = asked["texts"][0]
    result = run("explain", "-m", path, "--json", stdin=_bytes(what))
    arguments = ["explain", "-m", "MODEL", "--json"]
    return {"arguments": arguments, "stdin": what, "result": json.loads(result)}


# ---- a folder of evidence ----


class Case:
    """One model on its way to its folder."""

    def __init__(self, name: str, note: str, asked: dict[str, Any]) -> None:
        self.name, self.note, self.asked = name, note, asked
        self.folder = Path(tempfile.mkdtemp())
        self.path = str(self.folder / "model.nbspam")
        self.journal = self.path + ".journal"
        self.facts: dict[str, Any] = {"what": note, "program": f"nbspam {nbspam.__version__}"}
        self.facts |= {"commit": COMMIT, "arguments": []}

    def run(self, *words: str, day: int = TRAINED) -> "Case":
        self.facts["arguments"].append({"day": day, "arguments": list(words)})
        run(*with_path(list(words), self.path), day=day)
        return self

    def train(self, *words: str) -> "Case":
        jobs = [] if "--target" in words else ["-j", "1"]
        return self.run("train", *words, *jobs, "-m", "MODEL")

    def change(self, changes: list[Change], key: str = "changes") -> "Case":
        outcomes = make_changes(self.path, changes)
        self.facts[key] = [
            {**change, "outcome": outcome}
            for change, outcome in zip(changes, outcomes, strict=True)
        ]
        return self

    def finish(self) -> None:
        """Ask the model, and put it with the answers into its folder."""
        facts, asked = self.facts, self.asked
        has_journal = os.path.exists(self.journal)
        names = ["model.nbspam"] + ["model.nbspam.journal"] * has_journal
        facts["files"] = {}
        for name in names:
            data = (self.folder / name).read_bytes()
            facts["files"][name] = {"bytes": len(data), "sha256": sha256(data)}
        facts["inputs"] = asked
        with tempfile.TemporaryDirectory() as elsewhere:
            alone = shutil.copy(self.path, os.path.join(elsewhere, "alone.nbspam"))
            model = load(alone)
            facts["file"] = answers(model, asked)
            is_tokens = isinstance(model, Classifier)
            remembers = is_tokens and model.memory is not None
            facts["can_learn_on"] = remembers
            if is_tokens and model.cutoffs is not None:
                facts["cutoffs"] = model.cutoffs._asdict()
            if remembers:
                facts["file"]["dump"] = dump_of(alone)
            else:
                try:
                    living.Living(alone)
                except NbspamError as error:
                    facts["refusal_to_learn"] = str(error).replace(alone, "MODEL")
            if "rows" not in asked:
                facts["explain"] = explained(alone, asked)
            if has_journal:
                self._with_journal(elsewhere)
        target = OUT / self.name
        target.mkdir(parents=True)
        for name in names:
            shutil.copyfile(self.folder / name, target / name)
        text = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
        (target / "expected.json").write_text(text, encoding="utf-8")
        shutil.rmtree(self.folder)

    def _with_journal(self, elsewhere: str) -> None:
        """Note what the model says with its journal, and when that is taken in."""
        facts = self.facts
        path = os.path.join(elsewhere, "model.nbspam")
        shutil.copy(self.path, path)
        shutil.copy(self.journal, path + ".journal")
        identity = read_snapshot(path).identity
        own = journal_module.read_journal(path)
        facts["journal"] = {
            "is_the_models": own.owner == identity,
            "owner": None if own.owner is None else own.owner._asdict(),
            "model": identity._asdict(),
            "changes": len(own.changes),
            "whole_bytes": own.end,
            "bytes": own.size,
        }
        facts["with_journal"] = answers(load(path), self.asked)
        whole = living.Living(path).whole()
        facts["whole"] = answers(whole, self.asked)
        facts["whole"]["dump"] = dump_of(path)
        # What is taken in is what is written and read again.
        again = os.path.join(elsewhere, "whole.nbspam")
        with locked(again):
            write(again, whole)
        written = answers(load(again), self.asked)
        assert all(written[key] == facts["whole"][key] for key in written), self.name
        data = Path(again).read_bytes()
        facts["whole"]["file"] = {"bytes": len(data), "sha256": sha256(data)}
        assert Path(path).read_bytes() == Path(self.path).read_bytes()
        assert Path(path + ".journal").read_bytes() == Path(self.journal).read_bytes()


def after_learning(case: Case, label: str, what: str, day: int) -> None:
    """Note what becomes of the files when one more message is learned, on a copy."""
    with tempfile.TemporaryDirectory() as elsewhere:
        path = os.path.join(elsewhere, "model.nbspam")
        shutil.copy(case.path, path)
        shutil.copy(case.journal, path + ".journal")
        outcome = living.learn(path, [Item(what, label)], day=day)
        table = load(path).table
        case.facts["after_learning_one"] = {
            "class": label,
            "what": what,
            "day": day,
            "learned": outcome.learned,
            "notes": [note.replace(elsewhere + os.sep, "") for note in outcome.notes],
            "files": sorted(os.listdir(elsewhere)),
            "class_count": dict(zip(table.classes, table.class_count.tolist(), strict=True)),
        }


# ---- the folders ----

MAIL = {"mail": ASKED}
TEXT = {"texts": ASKED_TEXTS}
FORTY = sources(ham=FORTY_HAM, spam=FORTY_SPAM)
FEW = sources(ham=FEW_HAM, spam=FEW_SPAM)


def rows_of(table: str) -> dict[str, Any]:
    with open(table, encoding="utf-8", newline="") as file:
        n_rows = len(list(csv.reader(file))) - 1
    return {"table": table, "rows": list(range(1, n_rows + 1))}


def make_mail() -> None:
    case = Case("mail", "default mail model: two classes, combined evidence; journal", MAIL)
    case.train(*FORTY).change(MAIL_CHANGES).finish()


def make_texts() -> None:
    case = Case("text", "preset text: pairs and characters, combined evidence; journal", TEXT)
    case.train("text.csv", "--preset", "text").change(TEXT_CHANGES).finish()
    # Of texts counts are counted unless told otherwise, which Bernoulli's model refuses.
    presence = ["--weighting", "presence"]
    for name, folder, table, more in (
        ("multinomial", "plain", "text.csv", []),
        ("bernoulli", "plain-bernoulli", "text.csv", presence),
        ("complement", "plain-complement", "three.csv", []),
    ):
        n = "three classes" if table == "three.csv" else "two classes"
        note = f"text, {n}, --model {name}: evidence is summed; journal"
        changes = TEXT_CHANGES
        if table == "three.csv":
            changes = [*changes, *relabelled("kitchen", TEXTS[13 + 6][1], day=20007)]
        case = Case(folder, note, TEXT)
        case.train(table, "--model", name, *more).change(changes).finish()
    case = Case("tutorial", "preset tutorial on mail: unit length, Latin-1; journal", MAIL)
    case.train(*FEW, "--preset", "tutorial").change(FEW_CHANGES).finish()


def make_many() -> None:
    case = Case("many", "mail of four classes: log length, blended evidence; journal", MAIL)
    case.train(*sources(**MANY)).change(MANY_CHANGES).finish()


def make_tables() -> None:
    more = {
        "categorical": ["--discretise", "frequency", "--bins", "3"],
        "tan": ["--discretise", "width", "--bins", "2"],
        "network": ["--discretise", "frequency", "--bins", "2"],
    }
    for name in ("categorical", "gaussian", "mixed", "spode", "tan", "aode", "a2de", "network"):
        table = NUMBERS if name == "gaussian" else WATERMELON
        case = Case(f"table-{name}", f"table, --model {name}", rows_of(table))
        case.train(table, "--target", TARGET, "--model", name, *more.get(name, [])).finish()


def make_features() -> None:
    for name in ("aode", "tan", "spode", "a2de", "network"):
        # A file of a2de with 20 tokens has 1 MB: its tables grow with their cube.
        n = "8" if name == "a2de" else "20"
        case = Case(f"features-{name}", f"mail, --model {name} --features {n}", MAIL)
        case.train(*FORTY, "--model", name, "--features", n).finish()


def make_torn() -> None:
    case = Case("journal-torn", "mail; the last record of the journal is cut in its middle", MAIL)
    case.train(*FEW).change(FEW_CHANGES)
    journal = journal_module.read_journal(case.path)
    data = Path(case.journal).read_bytes()
    start = 0
    for end in range(len(data)):  # where the last record begins: the end without it
        changes, stop = journal_module.parse(data[journal_module._HEADER.size :][:end])
        if len(changes) == len(journal.changes) - 1:
            start = journal_module._HEADER.size + stop
            break
    cut = (start + len(data)) // 2
    with open(case.journal, "r+b") as file:
        file.truncate(cut)
    assert len(journal_module.read_journal(case.path).changes) == len(journal.changes) - 1
    case.facts["cut"] = {"bytes_before": len(data), "last_record_from": start, "bytes": cut}
    after_learning(case, "ham", ham(74)[0], 20005)
    case.finish()


def make_left_behind() -> None:
    note = "mail; the file holds all changes, beside the journal of its predecessor"
    case = Case("journal-left-behind", note, MAIL)
    case.train(*FEW).change(FEW_CHANGES)
    left = Path(case.journal).read_bytes()
    whole = living.Living(case.path).whole()
    with locked(case.path):
        write(case.path, whole)  # which takes the journal away
    assert not os.path.exists(case.journal)
    Path(case.journal).write_bytes(left)
    after_learning(case, "ham", ham(74)[0], 20005)
    case.finish()


def make_foreign() -> None:
    other = Case("other", "", MAIL)
    other.train(*sources(ham=OTHER_HAM, spam=OTHER_SPAM))
    other.change(learned("ham", *ham(74, 14), day=20001) + learned("spam", *spam(94), day=20002))
    case = Case("journal-foreign", "mail, beside the journal of quite another model", MAIL)
    case.train(*FEW)
    shutil.copyfile(other.journal, case.journal)
    case.facts["other_model"] = {key: other.facts[key] for key in ("arguments", "changes")}
    shutil.rmtree(other.folder)
    after_learning(case, "ham", ham(27)[0], 20005)
    case.finish()


def make_em() -> None:
    case = Case("em", "mail, --unlabelled: no memory, cannot learn on", MAIL)
    labelled = sources(ham=FORTY_HAM[-6:], spam=FORTY_SPAM[-6:])
    others = FORTY_HAM[:14] + FORTY_SPAM[:14]
    case.train(*labelled, *(word for path in others for word in ("--unlabelled", path))).finish()


def make_tuned() -> None:
    case = Case("tuned", "mail with cutoffs of `tune --save`", MAIL)
    case.train(*FEW)
    costs = ["--fp-cost", "20", "--unsure-cost", "0.2", "--cv", "4", "--seed", "0"]
    case.run("tune", *FEW, *costs, "--save", "-j", "1", "-m", "MODEL").finish()


def make_pruned() -> None:
    note = "mail after `prune --half-life`: counts have faded"
    for name, more, words, changes in (
        ("pruned", "", [], None),
        (
            "pruned-journal",
            ", rare tokens are gone (--min-df 2); journal, which brings some of them back",
            ["--min-df", "2"],
            FEW_CHANGES,
        ),
    ):
        case = Case(name, note + more, MAIL)
        case.train(*FEW)
        case.run("prune", "--half-life", "100", *words, "-m", "MODEL", day=20045)
        assert load_state(case.path)["memory"]["decayed"] == 20045
        if changes is not None:
            case.change([{**change, "day": change["day"] + 50} for change in changes])
        case.finish()


def write_tables(folder: Path) -> None:
    """Write the tables that models are trained on, where corpora has none."""
    for name, texts in (("text.csv", TEXTS), ("three.csv", TEXTS + KITCHEN)):
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["label", "text"])
            rows.writerows(texts)
    # Gaussian looks at numbers alone: the last three columns.
    with open(CORPORA / WATERMELON, encoding="utf-8", newline="") as file:
        numbers = [row[-3:] for row in csv.reader(file)]
    with open(folder / NUMBERS, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(numbers)


ABOUT = f"""\
Models, journals and answers of the code of commit {COMMIT} (nbspam {nbspam.__version__}),
written by make_models.py with Python {sys.version.split()[0]}, numpy {np.__version__}.

Each folder of models/ has model.nbspam, model.nbspam.journal where there is one, and
expected.json:

  arguments     command lines, and the day each was run on; mail is named relative to
                corpora/mail, tables by their names (those not of corpora/ lie in a folder here:
                text.csv in text/, three.csv in plain-complement/, {NUMBERS}
                in table-gaussian/); MODEL is the model's path
  changes       what was learned, moved, un-learned afterwards, one call of nbspam.living each,
                and what became of it; without "learned", "moved" or "unlearned" no record
  files         bytes and sha256 of the files
  inputs        what is asked: messages below corpora/mail, texts (UTF-8, as a table's), or rows
                of a table, counted from 1 without its names; never learned but for tables' rows
  file          (a) by the model file alone
  journal       what the journal holds, and whether it is of this model
  with_journal  (b) by file and journal; for information: approximate by design
  whole         (c) with the journal taken in: Living(path).whole(); "file" in it is the model
                file that it is written as (with the program's version in it)
  dump          sha256 of what `nbspam dump` prints; of its first line (settings, which stand
                there as well), its lines of tokens, and its lines of messages, alone
  explain       one `nbspam explain --json`, of the file alone
  after_learning_one   what becomes of torn, left and foreign journals when a writer comes

All inputs of a folder were asked in one call.  Asked one by one, answers differ in the last
bits (sums are taken in another order): compare with a tolerance of, say, 1e-12.
No folder has a journal with a new class: such a journal is taken in at once (Living._pays).

"""


def readme() -> str:
    lines = []
    for folder in sorted(path for path in OUT.iterdir()):
        note = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["what"]
        lines.append(f"{folder.name:<20} {note}\n")
    return ABOUT + "".join(lines)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        # Here names are those below corpora/mail, and of tables their own.
        for kind in ("ham", "spam"):
            os.symlink(CORPORA / "mail" / kind, Path(place) / kind)
        os.symlink(CORPORA / WATERMELON, Path(place) / WATERMELON)
        write_tables(Path(place))
        os.chdir(place)
        for make in (
            *(make_mail, make_texts, make_many, make_tables, make_features, make_torn),
            *(make_left_behind, make_foreign, make_em, make_tuned, make_pruned),
        ):
            make()
        os.chdir("/")
        for folder, name in (
            ("text", "text.csv"),
            ("plain-complement", "three.csv"),
            ("table-gaussian", NUMBERS),
        ):
            shutil.copyfile(Path(place) / name, OUT / folder / name)
    (OUT.parent / "README.txt").write_text(readme(), encoding="utf-8")


if __name__ == "__main__":
    main()
