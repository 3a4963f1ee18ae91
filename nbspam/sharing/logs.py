"""Shared logs: a stream in Redis or Valkey, or a table in PostgreSQL, and the lessons in them.

A log is a list of records, each with a position that grows.  It keeps an identifier, by which its
readers notice that it was replaced, and facts about its hosts.

A lesson is a record: a line of JSON, the body of a journal's record, a checksum.  Strangers may
write to a log: a record is checked as data, and nothing in it is executed.
"""

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from socket import AF_INET, SHUT_RDWR, SOCK_STREAM, fromfd
from threading import Timer
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, unquote, urlsplit
from uuid import uuid4

from nbspam.arrays import differences
from nbspam.counts.ledger import LabelChange
from nbspam.errors import SharedLogError, UsageError, library_error
from nbspam.settings import Settings
from nbspam.store.fields import MAX_TOKEN
from nbspam.store.journal import decode_record
from nbspam.tokens.sparse import RIDER_MASK
from nbspam.tokens.tokenizer import groups_of

_PATIENCE = 10.0  # seconds for an answer of the log's server
_SHIFT = 64  # bits of a stream's counter within a millisecond
_NUMBERS = 1 << 31  # of records in a table; a position is seconds * _NUMBERS + number
_SECONDS = "extract(epoch FROM clock_timestamp())::bigint"  # in PostgreSQL
_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_AGAIN = "lessons wait until it is back"


class LogEnd(NamedTuple):
    """The state of a log."""

    identity: str  # of this log; another one if it was replaced
    n_records: int  # that were ever appended
    n_trimmed: int  # of records that were trimmed
    position: int  # that was given last
    seconds: int  # since 1970, by the clock of the log's server


class SharedLog(Protocol):
    """A log that several hosts append to and read.  Methods raise SharedLogError."""

    name: str  # its address, without options: they may be long or secret

    def append(self, records: Sequence[bytes]) -> int:
        """Append records in this order; return the position of the last one."""

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the next records behind a position, at most `limit`, with their positions."""

    def wait(self, after: int, timeout: float) -> None:
        """Return when there is a record behind a position, or after `timeout` seconds."""

    def trim(self, position: int) -> None:
        """Remove the records up to a position."""

    def end(self) -> LogEnd:
        """Return the log's identifier and length; the first caller gives it an identifier."""

    def report(self, host: str, facts: dict[str, Any]) -> None:
        """Keep the facts that a host reports, in place of its earlier ones; none: forget it."""

    def hosts(self) -> dict[str, dict[str, Any]]:
        """Return the reports of hosts."""

    def close(self) -> None:
        """Close the connection."""


def open_log(url: str, password: str | None = None) -> SharedLog:
    """Return the log at an address, without connecting yet; raises UsageError.

    url: redis://[USER@]HOST[:PORT]/KEY, rediss:// for TLS, or postgresql://…/DATABASE/TABLE.
    """
    how = "give redis://HOST/KEY or postgresql://HOST/DATABASE/TABLE, with %23 for #"
    try:
        parts = urlsplit(url)
        if parts.password is not None or "password" in parts.query:  # no error may repeat it
            raise UsageError("--share: a password in an address; give --share-password-command")
        kinds = {"redis": _RedisLog, "rediss": _RedisLog, "postgresql": _PostgresLog}
        if parts.scheme not in kinds or parts.fragment:
            shown = parts._replace(fragment="").geturl()
            raise UsageError(f"--share {shown}: not the address of a log; {how}")
        return kinds[parts.scheme](parts, password)
    except ValueError:  # no port, or half an address of IPv6; perhaps with a password
        raise UsageError(f"--share: not the address of a log; {how}") from None
    except ImportError as error:
        raise library_error("--share", error.name, "share") from error


def _address(parts: SplitResult) -> str:
    """Return the address with these parts; geturl() drops slashes before a host that is ""."""
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{query}"


def _reports(texts: Iterable[tuple[str, str | bytes]]) -> dict[str, dict[str, Any]]:
    """Return hosts' reports, without empty ones and what is none."""
    found = {}
    for host, text in texts:
        with suppress(ValueError, RecursionError):
            facts = json.loads(text)
            json.dumps(facts, allow_nan=False)  # Python reads infinity, which is no JSON
            if isinstance(facts, dict) and facts:
                found[host] = facts
    return found


def _lost(name: str, error: Exception) -> SharedLogError:
    # redis quotes the command of a pipeline, and with it the record, before what is wrong.
    text = str(error).rpartition(" of pipeline caused error: ")[2].strip()
    reason = (text or type(error).__name__).splitlines()[0].rstrip(". ")
    return SharedLogError(f"{name}: {reason}; {_AGAIN}")


class _RedisLog(SharedLog):
    """A stream KEY; KEY:log has its identifier, and KEY:hosts what hosts report."""

    def __init__(self, parts: SplitResult, password: str | None) -> None:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.name = _address(parts._replace(query=""))
        self._key = unquote(parts.path.strip("/"))
        if not parts.hostname or not self._key or parts.query:
            why = "no host or key, or an option behind it; give redis://HOST:PORT/KEY"
            raise UsageError(f"--share {self.name}: {why}")
        self._failure, self._denied = redis.RedisError, redis.AuthenticationError
        self._redis: Any = redis.Redis(
            parts.hostname,
            parts.port or 6379,
            username=unquote(parts.username or "") or None,
            password=password,
            ssl=parts.scheme == "rediss",
            ssl_check_hostname=True,  # the default of redis since 6
            socket_timeout=_PATIENCE,
            socket_connect_timeout=_PATIENCE,
            health_check_interval=15,
            retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),  # it may have gone; once
        )

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        try:
            yield self._redis
        except self._denied as error:
            why = "no password, or a wrong one; give it by --share-password-command"
            raise SharedLogError(f"{self.name}: {why}; {_AGAIN}") from error
        except (self._failure, OSError) as error:
            self.close()  # another server may have taken over the address
            raise _lost(self.name, error) from error

    def append(self, records: Sequence[bytes]) -> int:
        with self._asked() as server, server.pipeline() as pipeline:
            pipeline.hincrby(f"{self._key}:log", "added", len(records))
            for record in records:
                pipeline.xadd(self._key, {b"lesson": record})
            return _position(pipeline.execute()[-1])

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the next records; foreign entries become empty records."""
        with self._asked() as server:
            found = server.xrange(self._key, min=f"({_stream_id(after)}", count=limit)
        return [(_position(name), fields.get(b"lesson", b"")) for name, fields in found]

    def wait(self, after: int, timeout: float) -> None:
        with self._asked() as server:
            server.xread(
                {self._key: _stream_id(after)}, count=1, block=max(1, int(1000 * timeout))
            )

    def trim(self, position: int) -> None:
        with self._asked() as server:
            server.xtrim(self._key, minid=_stream_id(position + 1), approximate=False)

    def end(self) -> LogEnd:
        """Return identifier and length; a stream that was deleted counts as trimmed."""
        facts = f"{self._key}:log"
        with self._asked() as server, server.pipeline(transaction=False) as pipeline:
            pipeline.hsetnx(facts, "id", uuid4().hex).hmget(facts, "id", "added")
            pipeline.time().exists(self._key).xinfo_stream(self._key)
            given, known, time, is_there, found = pipeline.execute(raise_on_error=False)
            for answer in (known, time, is_there, found if is_there else {}):
                if isinstance(answer, Exception):
                    raise answer
            if known[0] is None:  # a new log, on a server that is full or may only be read
                raise self._failure(str(given))
        found = found if is_there else {"length": 0}
        # Redis and Valkey count all entries since 7.0, also foreign ones, but not deleted streams.
        added = max(int(found.get("entries-added", 0)), int(known[1] or 0))
        n_trimmed = added - int(found["length"])
        position = _position(found.get("last-generated-id", b"0-0"))
        return LogEnd(known[0].decode("ascii", "replace"), added, n_trimmed, position, time[0])

    def report(self, host: str, facts: dict[str, Any]) -> None:
        with self._asked() as server:
            server.hset(f"{self._key}:hosts", host, json.dumps(facts))

    def hosts(self) -> dict[str, dict[str, Any]]:
        with self._asked() as server:
            found = server.hgetall(f"{self._key}:hosts")
        return _reports((name.decode("utf-8", "replace"), text) for name, text in found.items())

    def close(self) -> None:
        self._redis.close()


def _position(stream_id: bytes) -> int:
    milliseconds, number = stream_id.split(b"-")
    return int(milliseconds) << _SHIFT | int(number)


def _stream_id(position: int) -> str:
    return f"{position >> _SHIFT}-{position & ((1 << _SHIFT) - 1)}"


class _PostgresLog(SharedLog):
    """A table TABLE; TABLE_log has its identifier and last position, and TABLE_hosts the hosts.

    An append locks the row of TABLE_log: so records become visible in their order, which numbers
    of a SEQUENCE do not.  A position has the time above the record's number: a server that lost
    its last records gives none of their positions again.
    """

    def __init__(self, parts: SplitResult, password: str | None) -> None:
        import psycopg

        self.name = _address(parts._replace(query=""))
        database, _, self._table = parts.path.rpartition("/")
        if not database.strip("/") or not _TABLE.fullmatch(self._table):
            raise UsageError(
                f"--share {self.name}: no database, or a table of other characters than a-z, 0-9,"
                " _; give postgresql://HOST/DATABASE/TABLE"
            )
        self._address = _address(parts._replace(path=database))
        self._password = password
        self._psycopg: Any = psycopg
        self._open: Any = None  # the connection, once there is one

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        try:
            if self._open is None:
                self._connect()
            with fromfd(self._open.fileno(), AF_INET, SOCK_STREAM) as line:
                late = Timer(2 * _PATIENCE, line.shutdown, [SHUT_RDWR])  # it stands still
                late.start()
                try:
                    yield self._open
                finally:
                    late.cancel()
        except (self._psycopg.Error, OSError) as error:
            self.close()
            raise _lost(self.name, error) from error

    def _connect(self) -> None:
        connection = self._psycopg.connect(
            self._address,
            password=self._password,
            autocommit=True,
            client_encoding="utf8",  # psycopg gives no text from a database in SQL_ASCII otherwise
            connect_timeout=int(_PATIENCE),
            options=f"-c statement_timeout={int(1000 * _PATIENCE)}",
            keepalives_idle=15,
            tcp_user_timeout=int(1000 * _PATIENCE),
        )
        self._open, table = connection, self._table
        with connection.transaction():  # several hosts may begin at once
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [table])
            for name, columns in (  # a table that somebody dropped is made again
                (table, "position bigint PRIMARY KEY, record bytea"),
                (f"{table}_log", "id text, last bigint"),
                (f"{table}_hosts", "host text PRIMARY KEY, facts text"),
            ):
                if connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0] is None:
                    connection.execute(f'CREATE TABLE "{name}" ({columns})')
                    if name == f"{table}_log":
                        connection.execute(f"INSERT INTO {name} VALUES (%s, 0)", [uuid4().hex])
        connection.execute(f'LISTEN "{table}"')  # it may be a keyword

    def append(self, records: Sequence[bytes]) -> int:
        """Append records in this order, all or none of them."""
        table = self._table
        with self._asked() as connection, connection.transaction():
            found = connection.execute(  # foreign rows only make the log longer
                f'SELECT greatest(last, (SELECT max(position) FROM "{table}")), {_SECONDS}'
                f" FROM {table}_log FOR UPDATE"
            )
            last, seconds = self._row(found)
            last = max(last, seconds * _NUMBERS + last % _NUMBERS)
            connection.execute(f"UPDATE {table}_log SET last = %s", [last + len(records)])
            connection.execute(
                f'INSERT INTO "{table}" SELECT %s + number, record'
                " FROM unnest(%b::bytea[]) WITH ORDINALITY AS rows (record, number)",
                [last, list(records)],
            )
            connection.execute(f'NOTIFY "{table}"')
            return int(last + len(records))

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        with self._asked() as connection:
            found = connection.execute(
                f'SELECT position, record FROM "{self._table}" WHERE position > %s'
                " ORDER BY position LIMIT %s",
                [after, limit],
            ).fetchall()
        return [(position, bytes(record or b"")) for position, record in found]

    def wait(self, after: int, timeout: float) -> None:
        """Wait for a notice, unless a record is there."""
        if not self.read(after, 1):
            with self._asked() as connection:
                list(connection.notifies(timeout=timeout, stop_after=1))

    def trim(self, position: int) -> None:
        with self._asked() as connection:
            connection.execute(f'DELETE FROM "{self._table}" WHERE position <= %s', [position])

    def end(self) -> LogEnd:
        """Return identifier and length; rows that others removed count as trimmed, too."""
        before = f'coalesce((SELECT min(position) - 1 FROM "{self._table}"), last)'
        with self._asked() as connection:
            found = connection.execute(
                f"SELECT id, last, {before}, greatest(last, (SELECT max(position) FROM"
                f' "{self._table}")), {_SECONDS} FROM {self._table}_log'
            )
        identity, last, trimmed, position, seconds = self._row(found)
        return LogEnd(identity, last % _NUMBERS, trimmed % _NUMBERS, position, seconds)

    def _row(self, found: Any) -> tuple[Any, ...]:
        """Return the only row of TABLE_log; raises SharedLogError if it was removed."""
        row: tuple[Any, ...] | None = found.fetchone()
        if row is None:
            raise SharedLogError(f"{self.name}: its table {self._table}_log is empty; {_AGAIN}")
        return row

    def report(self, host: str, facts: dict[str, Any]) -> None:
        with self._asked() as connection:
            connection.execute(
                f"INSERT INTO {self._table}_hosts VALUES (%s, %s)"
                " ON CONFLICT (host) DO UPDATE SET facts = excluded.facts",
                [host, json.dumps(facts)],
            )

    def hosts(self) -> dict[str, dict[str, Any]]:
        with self._asked() as connection:
            found = connection.execute(f"SELECT host, facts FROM {self._table}_hosts").fetchall()
        return _reports((host, text or "") for host, text in found)

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        if self._open is not None:
            self._open.close()
            self._open = None


# ---- lessons as records ----

_MAGIC = b"nbspam lesson "
_FORMAT = 1  # of lessons and of a journal's records; versions with the same one share a log
_CRC = struct.Struct("<I")
_MAX_HEAD = 2_000  # bytes
MAX_CLASS = 255  # characters: folders may have names of so many
_MAX_RECORD = 16 << 20  # bytes


class SharedLesson(NamedTuple):
    """A lesson of one host, with everything that another host needs to learn it."""

    origin: str  # of the host's outbox
    number: int  # in that outbox, ascending
    host: str
    user: str  # whose model learns; "": the site's
    settings: str  # `fingerprint` of the settings that its tokens were found with
    change: LabelChange  # with the texts of all of its tokens
    record: int = 0  # its number in the log, from 1


class ForeignRecordError(Exception):
    """A record is not a lesson, or is damaged; it is skipped."""


def fingerprint(settings: Settings) -> str:
    """Return a digest of the settings of a model, without its user's sent mail."""
    text = json.dumps(settings.to_dict(), sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encode_lesson(head: tuple[str, int, str, str, str], body: bytes) -> bytes:
    """Return a lesson as a record.

    head: the fields of a SharedLesson before its change.  body: the change, as in a journal.
    """
    values = {"format": _FORMAT, **dict(zip(SharedLesson._fields, head, strict=False))}
    data = _MAGIC + json.dumps(values).encode() + b"\n" + body
    return data + _CRC.pack(zlib.crc32(data))


def decode_lesson(record: bytes) -> SharedLesson:
    """Return the lesson in a record; raises ForeignRecordError.

    Raises SharedLogError for a lesson in another format.
    """
    head, line_end, rest = record[:_MAX_HEAD].partition(b"\n")
    if not (record.startswith(_MAGIC) and line_end) or len(record) > _MAX_RECORD:
        raise ForeignRecordError("no lesson")
    (crc,) = _CRC.unpack(record[-_CRC.size :]) if len(rest) >= _CRC.size else (None,)
    if zlib.crc32(record[: -_CRC.size]) != crc:
        raise ForeignRecordError("its checksum is wrong")
    try:
        values: dict[str, Any] = json.loads(head[len(_MAGIC) :])
        number, form = values["number"], values["format"]
        texts = [values[name] for name in ("origin", "host", "user", "settings")]
        origin, host, user, settings = texts
        if type(number) is not int or not all(isinstance(text, str) for text in texts):
            raise ValueError("values of another kind")
        if number >= 1 << 63 or not origin.isascii():
            raise ValueError("an origin or a number that no host has")
        user.encode()  # raises for half of a letter, which SQLite cannot keep
        if form != _FORMAT:
            raise SharedLogError(
                f"host {host[:100]!r} shares lessons in format {str(form)[:20]}, and this nbspam"
                f" reads {_FORMAT}; let all hosts run one version, and begin a new log"
            )
        change = decode_record(record[len(head) + 1 : -_CRC.size])
        _check_lesson(change)
    except (ValueError, LookupError, TypeError, RecursionError, struct.error) as error:
        raise ForeignRecordError(str(error)) from error
    return SharedLesson(origin, number, host, user, settings, change)


def _check_lesson(change: LabelChange) -> None:
    """Raise ValueError for a change that no host writes."""
    keys, new = change.document.tokens, change.new
    for name in (change.before, change.after):
        if name is not None and not 0 < len(name) <= MAX_CLASS:
            raise ValueError("a class has no name")
    if len(new) != len(keys):
        raise ValueError("a token has no text")
    if (keys[1:] <= keys[:-1]).any() or (keys & RIDER_MASK).any():
        raise ValueError("its keys are out of order, or not keys")
    if (groups_of(new.keys) != new.groups).any():
        raise ValueError("a token is of another group")
    if differences(new.offsets).max(initial=0) > MAX_TOKEN or (change.document.times() == 0).any():
        raise ValueError("a token is too long, or never occurs")
