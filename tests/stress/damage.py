"""Damage to models and journals: nothing is lost in silence, and nothing ends in a traceback.

bytes: a bit is flipped, a piece cut out, doubled, moved or replaced, or the end cut off, in a
model file or in its journal.  Then the model is loaded.  Every acknowledged change must be there,
or else something must have been said; what is there must never be wrong.  Then a message is
learned, and again nothing may be lost in silence.

states: a part of what a model file holds is replaced by something else (another type, shape or
order, a number out of range), and the file is written with a right checksum.  Then the command
line is run on it: every command must succeed, or fail with one line.
"""

import contextlib
import copy
import io
import random
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

from nbspam.cli.main import exit_status
from nbspam.errors import ModelWarning, NbspamError
from nbspam.sources.items import Item
from nbspam.store.journal import journal_path
from nbspam.store.library import train
from nbspam.store.model import StoredModel
from nbspam.store.modelfile import load_state
from nbspam.store.open import load_classifier, load_tokens
from stored import save_state
from stress.hostile import mutated as mutated_bytes
from support import CATEGORIES, MELONS

N_START, N_CHANGES = 400, 9  # messages that the model file has, and that its journal has
WORDS = ["cheap", "pills", "buy", "now", "lunch", "friday", "meeting", "draft", "sail", "wave"]


def message(rng, n):
    words = " ".join(rng.choices(WORDS, k=6))
    return f"Message-ID: <{n}@example.org>\nSubject: own{n}\n\n{words} own{n}\n".encode()


def items(n, classes, seed):
    rng = random.Random(seed)
    return [Item(f"m{i}", classes[i % len(classes)], message(rng, seed + i)) for i in range(n)]


# ---- bytes ----


def learned(path, names):
    vocabulary = load_tokens(path).table.vocabulary
    texts = {vocabulary.text(j) for j in range(len(vocabulary))}
    return {name for name in names if name in texts}


def attempt(path, names):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ModelWarning)
        try:
            return learned(path, names), bool(told)
        except NbspamError:
            return set(), True


def damage_bytes(times, seed, folder):
    path = str(folder / "m.nbspam")
    train(items(N_START, ("ham", "spam"), 0)).save(path)
    for each in items(N_CHANGES, ("ham", "spam"), 10_000):
        StoredModel(path).learn([each], day=1)
    names = [f"own{10_000 + n}" for n in range(N_CHANGES)]
    whole = {name: Path(name).read_bytes() for name in (path, journal_path(path))}
    assert learned(path, names) == set(names)
    wrong = []
    rng = random.Random(seed)
    for n in range(times):
        for left in folder.iterdir():
            left.unlink()
        for name, data in whole.items():
            Path(name).write_bytes(data)
        victim = rng.choice(list(whole))
        data = bytearray(whole[victim])
        if n % 2:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            data = mutated_bytes(rng, data, 1)
        Path(victim).write_bytes(data[: rng.randrange(len(data))] if n % 4 == 0 else data)
        what = f"{n}, {'journal' if victim != path else 'model'}"
        here, said = attempt(path, names)
        if len(here) < len(names) and not said:
            wrong.append(f"{what}: {len(names) - len(here)} changes are missing, silently")
        wrong += later(path, names, here, what)
    return wrong


def later(path, names, before, what):
    """Learn one more message; return what was lost by it."""
    (extra,) = items(1, ("ham",), 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        try:
            StoredModel(path).learn([extra], day=1)
        except NbspamError:
            return []
        after = learned(path, [*names, "own20000"])
    if after != before | {"own20000"}:
        return [f"{what}: had {sorted(before)}, and after learning one more {sorted(after)}"]
    if any(word for word in load_classifier(path).classify([extra]) if not hasattr(word, "label")):
        return [f"{what}: no verdict"]
    return []


# ---- states ----


def models(folder):
    """Return models of all kinds: path, and what to classify."""
    mail, text = folder / "x.eml", folder / "x.txt"
    mail.write_bytes(message(random.Random(5), 5))
    text.write_text("cheap sail on friday\n")
    made = {
        "mail": train(items(40, ("ham", "spam"), 0)),
        "many": train(items(60, ("a", "b", "c", "d"), 0)),
        "text": train([each._replace(is_text=True) for each in items(40, ("x", "y"), 0)]),
        "multinomial": train(items(40, ("ham", "spam"), 0), model="multinomial"),
        "bernoulli": train(items(40, ("ham", "spam"), 0), model="bernoulli"),
    }
    with_parents = ("spode", "tan", "aode", "a2de", "network")
    for name in with_parents:
        made[f"features {name}"] = train(items(40, ("ham", "spam"), 0), model=name, max_features=6)
    for name in ("categorical", "gaussian", "mixed", "akde", *with_parents):
        drop = CATEGORIES if name == "gaussian" else ()
        made[f"table {name}"] = train(MELONS, target="好瓜", model=name, drop=drop)
    paths = {}
    for name, model in made.items():
        path = str(folder / f"{name.replace(' ', '-')}.nbspam")
        model.save(path)
        paths[name] = path, [str(MELONS) if name.startswith("table") else str(mail)]
    return paths


def places(value, at=()):
    """Yield the way to every value within a state."""
    inner = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value[:8])
    for key, own in inner:
        yield (*at, key)
        yield from places(own, (*at, key))


VALUES = [
    *(None, True, False, 0, 1, -1, 2, 7, 300, 2**31, 2**63 - 1, -(2**63), 2**64 - 1),
    *(0.5, -0.5, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
    *("", "x", "ham", "spam", "\udcff", "auto", "uniform", "presence", "counts", "text"),
    *([], {}, [1], ["x"], [None], {"x": 1}, [[]], [1.5, float("nan")]),
]
KINDS = ["b1", "i1", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def mutated_array(array, rng):
    """Return an array of another type, shape or order, or with other numbers."""
    if not array.size or rng.random() < 0.2:
        shape = tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
        return np.zeros(shape, rng.choice(KINDS))
    way = rng.randrange(8)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way == 0:
            return array.astype(rng.choice(KINDS))
        if way == 1:
            return array[: rng.randrange(len(array))].copy() if array.ndim else array
        if way == 2:
            return np.concatenate([array, array[:1]]) if array.ndim else array
        if way == 3:
            return array[::-1].copy() if array.ndim else array
        if way == 4:
            return np.ascontiguousarray(array.T) if array.ndim > 1 else array[:, None]
        if way == 5:
            return rng.choice(VALUES)
        changed = array.copy()
        extremes = [0, 1, -1, 255, 65535, 2**31, 2**32 - 1, 2**62, float("nan"), float("inf")]
        new = np.array(rng.choice([*extremes, -0.5, -1e308, 1e308])).astype(array.dtype)
        if way == 6:
            changed.ravel()[rng.randrange(array.size)] = new
        else:
            changed[...] = new
        return changed


def mutated(state, rng):
    """Return a description of the changes, and the changed state."""
    state = copy.deepcopy(state)
    what = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        way = rng.choice(list(places(state)))
        holder = state
        for key in way[:-1]:
            holder = holder[key]
        old = holder[way[-1]]
        if isinstance(holder, dict) and rng.random() < 0.1:
            del holder[way[-1]]
            what.append(f"{way}: deleted")
            continue
        new = copy.deepcopy(rng.choice(VALUES))  # another change may be within it
        if isinstance(old, np.ndarray):
            new = mutated_array(old, rng)
        elif isinstance(old, list) and old and rng.random() < 0.5:
            new = rng.choice([old[::-1], old[:-1], [*old, old[0]], [*old, *old]])
        holder[way[-1]] = copy.deepcopy(new)  # VALUES stay what they are
        what.append(f"{way}: {str(new)[:60]!r}")
    return "; ".join(what), state


def commands(name, path, sources):
    """Return the command lines that are run on a mutated model."""
    group = ["table"] if name.startswith("table ") else []
    run = [[*group, name, "-m", path, *sources] for name in ("classify", "explain", "eval")]
    run += [[*group, *words, "-m", path] for words in (["info"], ["info", "--json"], ["export"])]
    run += [["doctor", "-m", path], ["words", "-m", path]]
    if "network" in name:
        run.append([*group, "query", "-m", path])
    if " " not in name:
        run += [["update", "-m", path, "--ham", sources[0]], ["prune", "-m", path]]
    return run


def complaint_of(line):
    """Run a command line; return why it failed in another way than with a line, or None."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            exit_status(line)
    except Exception:
        frames = traceback.format_exc().strip().splitlines()
        return f"{line[0]}: {frames[-1]} ({frames[-3].strip()})"
    if any(not each.startswith("nbspam: ") for each in err.getvalue().splitlines()):
        return f"{line[0]}: {err.getvalue()!r}"
    return None


def damage_states(times, seed, folder):
    made = models(folder)
    states = {name: load_state(path) for name, (path, _) in made.items()}
    for name, (path, sources) in made.items():
        for line in commands(name, path, sources):
            complaint = complaint_of(line)
            assert complaint is None, (name, complaint)
    wrong = []
    rng = random.Random(seed)
    path = str(folder / "mutated.nbspam")
    warnings.simplefilter("error")
    for n in range(times):
        name = rng.choice(list(states))
        what, state = mutated(states[name], rng)
        for left in folder.glob("mutated*"):
            left.unlink()
        save_state(path, state)
        try:
            load_classifier(path)
        except NbspamError:
            continue
        except Exception:
            frames = traceback.format_exc().strip().splitlines()
            wrong.append(f"{n}, {name}, {what}: load: {frames[-1]} ({frames[-3].strip()})")
            continue
        for line in commands(name, path, made[name][1]):
            complaint = complaint_of(line)
            if complaint is not None:
                wrong.append(f"{n}, {name}, {what}: {complaint}")
    return wrong


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("damage", [damage_bytes, damage_states])
def test_no_damage_is_silent_and_no_mutation_ends_in_a_traceback(damage, seed, tmp_path):
    assert damage(2000, seed, tmp_path) == []
