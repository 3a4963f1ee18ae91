"""Kill -9 at random moments: four writers and two readers of one model lose nothing.

Every writer learns messages of its own, moves some, un-learns some.  It logs what it is about
to do and, once the library has returned, that it was done.  Readers load the model all the
time.  Each message has words of its own, so that half a message would show.  The model is
small, so that a new file is written at every few changes.  At the end every acknowledged change
must be there, and nobody may have seen a torn state.
"""

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import pytest

from nbspam.classifier.training import train_classifier
from nbspam.counts.counting import count_items
from nbspam.errors import ModelWarning, NbspamError
from nbspam.mail.headers import Field
from nbspam.mail.message import Message
from nbspam.settings import PRESETS, TokenSettings
from nbspam.sources.items import Item
from nbspam.store.model import StoredModel
from nbspam.store.open import load_tokens as load
from nbspam.store.open import save_classifier
from nbspam.store.upkeep import GOOD, findings
from nbspam.tokens.tokenizer import tokenize

WRITERS, READERS = 4, 2
CLASSES = ("ham", "spam")
OWN_WORDS = 5  # of every message
N_START = 160  # messages that the model knows first: eight changes of a class make a new file
PAUSE = (0.002, 0.16)  # seconds until a kill, once there are more changes than kills


def words_of(name):
    return [b"w%d%s" % (n, name.encode()) for n in range(OWN_WORDS)]


def message(name):
    text = b" ".join([*words_of(name), b"cheap" if name[-1] in "02468" else b"lunch"])
    return b"Message-ID: <%s@example.org>\nSubject: %s\n\n%s\n" % (name.encode(), text[:9], text)


def keys_of(name):
    body = Message((Field("body", b" ".join(words_of(name))),))
    return tokenize([body], TokenSettings()).keys


def state_of(classifier, name):
    """Return the class that has a message's words; "none", or "torn"."""
    column = classifier.table.vocabulary.columns(keys_of(name))
    if (column < 0).all():
        return "none"
    if (column < 0).any():
        return "torn"
    rows = classifier.table.feature_count[column]
    for k, label in enumerate(classifier.classes):
        if (rows[:, k] == 1).all() and rows.sum() == len(rows):
            return label
    return "none" if not rows.any() else "torn"


def writer(path, log, number, seed):
    """Change the model until killed; log each change before and after it."""
    rng = random.Random(seed)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    mine = [name for name, (done, _) in read_log(log).items() if done != "none"]
    count = seed * 100_000
    # Half of them hold the model as a server would, half open it for each message.
    held = StoredModel(path) if number % 2 else None
    while True:
        name = f"{number}x{count}"
        action = rng.random()
        count += 1
        to = rng.choice(CLASSES)
        if mine and action < 0.3:
            name = rng.choice(mine)
            if action < 0.15:
                to = "none"
                mine.remove(name)
        else:
            mine.append(name)
        if count % 10 == 0:
            StoredModel(path).compact()  # as a server's process does, while others learn on
        os.write(descriptor, f"? {name} {to}\n".encode())
        model = held or StoredModel(path)
        if to == "none":
            model.unlearn([Item(name, None, message(name))], day=1)
        else:
            model.learn([Item(name, to, message(name))], day=1)
        os.write(descriptor, f"! {name} {to}\n".encode())


def read_log(log):
    """Return for each message what was acknowledged last, and what may have come after."""
    states = {}
    if not os.path.exists(log):
        return states
    with open(log) as file:
        for line in file:
            if line.endswith("\n"):
                mark, name, to = line.split()
                done, open_ = states.get(name, ("none", set()))
                states[name] = (to, set()) if mark == "!" else (done, open_ | {to})
    return states


def count_acknowledged(logs):
    return sum(Path(log).read_bytes().count(b"!") for log in logs if os.path.exists(log))


def wrong(classifier, states):
    """Return the contradictions to the log, one line a message."""
    found = []
    for name, (done, may_be) in states.items():
        state = state_of(classifier, name)
        if state not in {done, *may_be}:
            found.append(f"{name}: {state}, should be {done} or {may_be}")
    return found


def reader(path, logs, report, seed):
    """Load the model until killed; report what is torn, or older than what was acknowledged."""
    rng = random.Random(seed)
    descriptor = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        log = rng.choice(logs)
        before = read_log(log)
        try:
            classifier = load(path)
        except NbspamError as error:
            os.write(descriptor, f"torn {error}\n".encode())
            continue
        after = read_log(log)
        names = list(before)[-40:]
        # A message that was being changed while we read may be in either state.
        still = {name: before[name] for name in names if before[name] == after[name]}
        found = wrong(classifier, still)
        found += [f"{n}: torn" for n in names if state_of(classifier, n) == "torn"]
        os.write(descriptor, "".join(["read\n", *(f"torn {f}\n" for f in found)]).encode())


def spawn(work, *arguments):
    process = os.fork()
    if process:
        return process
    # A record that a kill cut is reported, and the next writer goes on: tests make that an error.
    warnings.simplefilter("ignore", ModelWarning)
    try:
        work(*arguments)
    except BaseException as error:
        sys.stderr.write(f"{work.__name__}: {type(error).__name__}: {error}\n")
    os._exit(1)


def run(kills, seed, folder):
    """Return what was lost, what was torn, and how many changes were acknowledged."""
    path = str(folder / "m.nbspam")
    settings = PRESETS["mail"]
    start = [Item(f"s{n}", CLASSES[n % 2], message(f"s{n}")) for n in range(N_START)]
    save_classifier(path, train_classifier(count_items(start, settings), settings, day=1))
    logs = [str(folder / f"log{n}") for n in range(WRITERS)]
    reports = [str(folder / f"report{n}") for n in range(READERS)]
    rng, ended = random.Random(seed), []

    def launch(slot, generation):
        if slot < WRITERS:
            return spawn(writer, path, logs[slot], slot, generation)
        at = slot - WRITERS
        return spawn(reader, path, logs, reports[at], generation)

    generation = iter(range(1, 1 << 30))
    running = [launch(slot, next(generation)) for slot in range(WRITERS + READERS)]
    for n_kills in range(kills):
        # On a busy machine a writer could be killed each time before it has done anything.
        while count_acknowledged(logs) <= n_kills:
            time.sleep(PAUSE[0])
        time.sleep(rng.uniform(*PAUSE))
        slot = rng.randrange(len(running))
        os.kill(running[slot], signal.SIGKILL)
        _, status = os.waitpid(running[slot], 0)
        if os.WIFEXITED(status):
            ended.append(f"process {slot} had ended by itself")
        running[slot] = launch(slot, next(generation))
    for process in running:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return lost(path, logs), [*ended, *torn(path, reports)], count_acknowledged(logs)


def lost(path, logs):
    models = load(path), StoredModel(path).whole()
    return [each for log in logs for model in models for each in wrong(model, read_log(log))]


def torn(path, reports):
    """Return what readers reported and what doctor finds; readers must have read."""
    lines = [Path(report).read_text().splitlines() for report in reports]
    assert any("read" in each for each in lines)
    told = [line for each in lines for line in each if line.startswith("torn")]
    # What a kill may leave, and the next writer removes: half a record, or a journal taken in.
    left = ("cut off", "is one that this model has taken in")
    bad = [found.text for found in findings(path) if found.state != GOOD]
    return told + [text for text in bad if not any(each in text for each in left)]


@pytest.mark.parametrize("seed", range(4))
def test_no_kill_loses_what_was_acknowledged_or_shows_a_torn_state(tmp_path, seed):
    lost_changes, torn_states, n_acknowledged = run(500, seed, tmp_path)

    assert lost_changes == []
    assert torn_states == []
    assert n_acknowledged > 500
