"""Mail in an object store of S3: moto's, on this machine, which ends with the tests."""

import os
import subprocess
import sys
import tarfile

import pytest

from support import complains, run_nbspam

MISSING = "development only: pip install 'nbspam[dev]'"
boto3 = pytest.importorskip("boto3", reason=MISSING)
pytest.importorskip("moto", reason=MISSING)
pytest.importorskip("s3fs", reason=MISSING)
pa = pytest.importorskip("pyarrow", reason=MISSING)

pytestmark = pytest.mark.slow
# It ends when this process ends, however it ends.
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
ACCOUNT = {
    "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1",
}  # fmt: skip


@pytest.fixture(scope="module")
def endpoint():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.stdin.close()


@pytest.fixture
def environment(endpoint, tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "NBSPAM_"))}
    model = {"NBSPAM_MODEL": str(tmp_path / "m.nbspam"), "XDG_CONFIG_HOME": "/nonexistent"}
    return {**kept, **ACCOUNT, **model, "AWS_ENDPOINT_URL": endpoint}


@pytest.fixture
def call(environment):
    return lambda *words, **changes: run_nbspam(*words, env={**environment, **changes})


@pytest.fixture
def bucket(endpoint, folder, tmp_path):
    """A bucket with the folder's mail: as objects, as tar, as parquet."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="y",
    )
    client.create_bucket(Bucket="mails")
    paths = sorted(folder.rglob("*.eml"))
    for path in paths:
        client.upload_file(str(path), "mails", f"box/{path.relative_to(folder)}")
    client.put_object(Bucket="mails", Key="box/ham/", Body=b"")  # as consoles make folders
    with tarfile.open(tmp_path / "box.tar.gz", "w:gz") as archive:
        for name in ("ham", "spam"):
            archive.add(folder / name, name)
    from pyarrow import parquet

    columns = {
        "message": [path.read_bytes() for path in paths],
        "label": [path.parent.name for path in paths],
    }
    parquet.write_table(pa.table(columns), tmp_path / "box.parquet")
    for name in ("box.tar.gz", "box.parquet"):
        client.upload_file(str(tmp_path / name), "mails", name)
    yield client
    listed = client.list_objects_v2(Bucket="mails")["Contents"]
    for entry in listed:
        client.delete_object(Bucket="mails", Key=entry["Key"])
    client.delete_bucket(Bucket="mails")


def test_mail_of_a_bucket_trains_the_model_of_the_same_mail_on_disk(bucket, folder, call):
    assert call("train", folder)[0] == 0
    exported = call("export")[1].splitlines()[1:]  # without the columns of a table
    assert len(exported) > 20

    for name in ("box", "box/", "box.tar.gz", "box.parquet"):
        status, output, errors = call("train", f"s3://mails/{name}", "-j", "2")
        assert (status, "read 4 messages (2 ham, 2 spam)" in output) == (0, True), errors
        assert call("export")[1].splitlines()[1:] == exported


def test_what_is_not_there_is_named(bucket, call, folder):
    assert call("train", folder)[0] == 0
    for url in ("s3://mails/none.eml", "s3://mails/none/", "s3://no-such-bucket/box"):
        said = f"{url}: no such file or folder; check the URL"
        assert complains(call("classify", url), 1, said)


def test_missing_credentials_take_one_line(bucket, call, tmp_path):
    found = call(
        "train",
        "s3://mails/box",
        AWS_ACCESS_KEY_ID="",
        AWS_SECRET_ACCESS_KEY="",
        HOME=str(tmp_path),
    )
    said = "s3://mails/box: refused, or no credentials (Unable to locate credentials); give them"
    assert complains(found, 2, said)


def test_a_store_that_does_not_answer_takes_one_line(bucket, call, tmp_path):
    found = call("train", "s3://mails/box", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert complains(found, 1, "s3://mails/box: failed (Could not connect")
    assert not (tmp_path / "m.nbspam").exists()
