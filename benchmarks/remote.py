"""Compare how long training takes on the same mail in files, archives and parquet.

usage: python benchmarks/remote.py CORPUS [--rounds 5] [--copies 1] [--objects N]

CORPUS is a folder with ham/ and spam/.  Its mail is packed as tar, tar.gz, zip, mbox.gz and
parquet (zstd, rows in the order of the files, in groups of 1,000); then `nbspam train` runs on
each form in turn, in several rounds, so that other work on the machine meets them all alike.
Printed are the medians of processor and wall time, the peak memory of one process, and the
median of each round's ratio of processor time to that of the files.  --copies repeats the mail,
each copy with a last line of its own.  --objects instead trains on so many messages as single
objects of moto's S3 on this machine (needs moto and s3fs), and says what one costs.
"""

import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from speed import ENVIRONMENT, NBSPAM, corpus_parser, run

SERVER = """
import logging, sys
logging.getLogger("werkzeug").setLevel(logging.ERROR)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


def mails(corpus: Path, copies: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield label, name and data of all messages."""
    for label in ("ham", "spam"):
        for path in sorted((corpus / label).iterdir()):
            data = path.read_bytes()
            yield label, path.name, data
            for n in range(1, copies):
                yield label, f"{n}-{path.name}", data + b"\ncopy %d\n" % n


def forms(corpus: Path, copies: int, work: Path) -> dict[str, list[str]]:
    """Write the mail in every form; return the arguments of `nbspam train` for each."""
    rows: dict[str, list[Any]] = {"message": [], "label": [], "name": []}
    boxes = {
        name: gzip.open(work / f"{name}.mbox.gz", "wb", 6)  # noqa: SIM115
        for name in ("ham", "spam")
    }
    with zipfile.ZipFile(work / "mail.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for label, name, data in mails(corpus, copies):
            path = work / "files" / label / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            archive.writestr(f"{label}/{name}", data)
            quoted = data.replace(b"\nFrom ", b"\n>From ")
            boxes[label].write(b"From a@b Thu Aug 22 12:36:23 2002\n" + quoted + b"\n\n")
            for key, value in zip(rows, (data, label, f"{label}/{name}"), strict=True):
                rows[key].append(value)
    for box in boxes.values():
        box.close()
    for name, mode in (("mail.tar", "w"), ("mail.tar.gz", "w:gz")):
        with tarfile.open(work / name, mode) as tar:  # type: ignore[call-overload]
            for label in boxes:
                tar.add(work / "files" / label, label)
    write_parquet(rows, work / "mail.parquet")
    found = {name: [str(work / name)] for name in ("files", "mail.tar", "mail.tar.gz")}
    found |= {name: [str(work / name)] for name in ("mail.zip", "mail.parquet")}
    found["mbox.gz"] = [f"--{name}={work / name}.mbox.gz" for name in boxes]
    return found


def write_parquet(rows: dict[str, list[Any]], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(
        {
            "message": pa.array(rows["message"], pa.large_binary()),
            "label": pa.array(rows["label"]).dictionary_encode(),
            "name": rows["name"],
        }
    )
    parquet.write_table(table, path, compression="zstd", row_group_size=1000)


def compare(corpus: Path, rounds: int, copies: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        # In a process of its own, whose memory would else be counted as that of its children.
        with ProcessPoolExecutor(1) as other:
            arguments = other.submit(forms, corpus, copies, work).result()
        model = str(work / "m.nbspam")
        wall: dict[str, list[float]] = {name: [] for name in arguments}
        cpu: dict[str, list[float]] = {name: [] for name in arguments}
        peak = dict.fromkeys(arguments, 0)
        for _ in range(rounds):
            for name, words in arguments.items():
                began = time.monotonic()
                memory, used = run([*NBSPAM, "train", "-q", "-m", model, *words], b"")
                wall[name].append(time.monotonic() - began)
                cpu[name].append(used)
                peak[name] = max(peak[name], memory)
        for name in arguments:
            size = sum(
                f.stat().st_size
                for word in arguments[name]
                for f in [Path(word.partition("=")[2] or word)]
                for f in (f.rglob("*.*") if f.is_dir() else [f])
            )
            ratio = median(a / b for a, b in zip(cpu[name], cpu["files"], strict=True))
            print(
                f"{name:14}{size / 1e6:8.1f} MB{median(cpu[name]):8.2f} s processor"
                f"{median(wall[name]):8.2f} s wall{peak[name] / 1e6:7.0f} MB peak{ratio:7.3f}"
            )


def objects(corpus: Path, n_objects: int) -> None:
    """Train on single objects of an S3 of this machine, and on the same mail as one parquet."""
    account = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    os.environ.update(account, AWS_DEFAULT_REGION="us-east-1")
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        assert server.stdin is not None
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        ENVIRONMENT.update({k: v for k, v in os.environ.items() if k.startswith("AWS_")})
        from fsspec.core import url_to_fs

        store, _ = url_to_fs("s3://mails")
        store.mkdir("mails")
        rows: dict[str, list[Any]] = {"message": [], "label": [], "name": []}
        every = max(sum(1 for _ in mails(corpus, 1)) // n_objects, 1)
        for number, (label, name, data) in enumerate(mails(corpus, 1)):
            if number % every == 0:
                store.pipe_file(f"mails/box/{label}/{name}", data)
                for key, value in zip(rows, (data, label, name), strict=True):
                    rows[key].append(value)
        write_parquet(rows, Path(folder) / "mail.parquet")
        store.put_file(str(Path(folder) / "mail.parquet"), "mails/mail.parquet")
        n = len(rows["label"])
        for name in ("box", "mail.parquet"):
            began = time.monotonic()
            command = [*NBSPAM, "train", "-q", "-m", f"{folder}/m.nbspam", f"s3://mails/{name}"]
            used = run(command, b"")[1]
            seconds = time.monotonic() - began
            print(f"{name:14}{n:7,} messages{used:8.2f} s processor{seconds:8.2f} s wall")
        server.stdin.close()


def main() -> None:
    parser = corpus_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--objects", type=int, help="train on so many objects of an S3")
    options = parser.parse_args()
    if options.objects:
        objects(options.corpus, options.objects)
    else:
        compare(options.corpus, options.rounds, options.copies)


if __name__ == "__main__":
    main()
