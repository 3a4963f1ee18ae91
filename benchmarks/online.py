"""Measure how many messages a second `nbspam eval --online` answers and then learns.

usage: python benchmarks/online.py CORPUS

CORPUS is a folder with ham/ and spam/, one message per file.  Printed are messages a second of
one process, with and without reading (parsing and tokenising), and beside them bogofilter, if
installed, which starts a process to classify a message and another to learn it.
"""

import argparse
import shutil
import time

import numpy as np
from accuracy import CLASSES, Messages, bogofilter_online

from nbspam.counts.corpus import read_corpus
from nbspam.evaluation.judging.online import online_trial
from nbspam.settings import Choices, settings_for
from nbspam.sources.items import read_items
from nbspam.sources.order import arranged


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", help="folder with ham/ and spam/")
    options = parser.parse_args()
    labelled = (item for item in read_items([options.corpus]) if item.label in CLASSES)
    items, _ = arranged(labelled)
    y = np.array([CLASSES.index(str(item.label)) for item in items])
    print(f"{options.corpus}: {len(items)} messages ({y.sum()} spam), messages a second\n")
    settings, _ = settings_for(items, Choices())
    start = time.perf_counter()
    data, _ = read_corpus(items, settings)
    read = time.perf_counter()
    online_trial(data, settings, "everything")
    end = time.perf_counter()
    print(f"nbspam, with reading     {len(items) / (end - start):10,.0f}")
    print(f"nbspam, without reading  {len(items) / (end - read):10,.0f}", flush=True)
    if shutil.which("bogofilter"):
        start = time.perf_counter()
        bogofilter_online(Messages(items, y))
        end = time.perf_counter()
        print(f"bogofilter               {len(items) / (end - start):10,.0f}")


if __name__ == "__main__":
    main()
