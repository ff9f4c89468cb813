"""A client of crudd in one file: Python 3.9 or newer, nothing but the standard library.

    import crudd

    with crudd.Client() as client:
        users = client.collection("users")
        users.create("ada", {"name": "Ada", "visits": 0})
        users.patch("ada", increment={"visits": 1})
        for user in users.query(crudd.where("visits") > 0):
            print(user.id, user.item["name"])

README.md beside this file describes it, and the wire protocol what the daemon does. A client is one connection with
one request at a time: threads may share it, and wait for each other. A feed has a connection of its own.

**Outcomes.** A call whose connection is lost is sent again, on a new one, until its time is over, as long as that
cannot apply anything twice: a call that only reads, and any call of which the daemon cannot have received the whole
frame. A write that was sent and got no reply raises `OutcomeUnknown`, and only the application can decide what to do
about it. Any other error of a write, `InternalError` aside, says that nothing was applied.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import json
import os
import random
import socket
import threading
import time
from typing import Any, Callable, Iterable, Iterator, Optional, Union

__all__ = [
    "Batch", "Change", "Client", "Closed", "Collection", "CollectionNotFound", "Corrupt", "CruddError", "CursorExpired",
    "Feed", "Filter", "InternalError", "InvalidConfiguration", "InvalidParams", "InvalidQuery", "InvalidRequest",
    "LimitExceeded", "MethodNotFound", "NoSpace", "OutcomeUnknown", "Page", "ParseError", "PermissionDenied",
    "ProtocolViolation", "Record", "RecordExists", "RecordNotFound", "RevisionMismatch", "TimedOut", "Unavailable",
    "Unsupported", "Upserted", "where",
]

DEFAULT_PATH = "/run/crudd/crudd.sock"
PROTOCOL = 1
# The longest frame that any configuration of a daemon allows.
LONGEST_FRAME = 1 << 30

# The methods that change nothing. One that is not known is assumed to write.
READING = frozenset(
    """record.read record.exists record.readMany record.query record.count collection.list collection.describe
    collection.changes backend.list plugin.list session.hello session.whoami session.list access.check daemon.ping
    daemon.status daemon.metrics daemon.slowLog request.cancel rpc.discover""".split())

_UNSET: Any = object()


# Errors


class CruddError(Exception):
    """Why a call failed. Decide on the class, or on `code` or `name`; the message is for people."""

    code = 0
    name = ""
    # Whether nothing was applied and the same call may succeed later.
    retryable = False

    def __init__(self, message: str, details: Optional[dict] = None):
        super().__init__(message)
        self.details: dict = details or {}

    def __str__(self) -> str:
        return f"{self.name}: {self.args[0]}"


class ParseError(CruddError):
    code, name = -32700, "parse_error"


class InvalidRequest(CruddError):
    code, name = -32600, "invalid_request"


class MethodNotFound(CruddError):
    code, name = -32601, "method_not_found"


class InvalidParams(CruddError):
    """`details["member"]` names the parameter."""

    code, name = -32602, "invalid_params"


class InternalError(CruddError):
    code, name = -32603, "internal_error"


class RecordNotFound(CruddError):
    code, name = -32001, "record_not_found"


class RecordExists(CruddError):
    code, name = -32002, "record_exists"


class RevisionMismatch(CruddError):
    code, name = -32003, "revision_mismatch"

    @property
    def revision(self) -> Optional[str]:
        """The current revision; None if there is no record."""
        return self.details.get("revision")


class CollectionNotFound(CruddError):
    code, name = -32004, "collection_not_found"


class PermissionDenied(CruddError):
    code, name = -32005, "permission_denied"


class Unsupported(CruddError):
    code, name = -32006, "unsupported"


class LimitExceeded(CruddError):
    """`details` has the name of the `limit`, and its `maximum`."""

    code, name = -32007, "limit_exceeded"


class Unavailable(CruddError):
    """The daemon or the backend is not there or overloaded; nothing was applied."""

    code, name, retryable = -32008, "unavailable", True


class OutcomeUnknown(CruddError):
    """A write may or may not have been applied."""

    code, name = -32009, "outcome_unknown"


class InvalidQuery(CruddError):
    code, name = -32010, "invalid_query"


class Corrupt(CruddError):
    code, name = -32011, "corrupt"


class NoSpace(CruddError):
    code, name, retryable = -32012, "no_space", True


class InvalidConfiguration(CruddError):
    code, name = -32013, "invalid_configuration"


class CursorExpired(CruddError):
    """The feed has to begin again at `"start"`."""

    code, name = -32014, "cursor_expired"


# All that a daemon may send: those that are defined so far.
_CLASSES = {error.code: error for error in CruddError.__subclasses__()}


class TimedOut(Unavailable):
    """The time of a call was over, and nothing was applied: it only reads, or could not be sent."""

    code, name = -32015, "timed_out"


class Closed(Unavailable):
    """The application has closed the client."""

    retryable = False


class ProtocolViolation(InternalError):
    """What came is not what the protocol allows."""


def _error(value: Any) -> CruddError:
    """The error that a response has, or an element of the results of a batch."""
    if not isinstance(value, dict) or type(value.get("code")) is not int:
        raise ProtocolViolation("an error without a code")
    data = value.get("data")
    data = data if isinstance(data, dict) else {}
    details = data.get("details")
    error = _CLASSES.get(value["code"], CruddError)(
        str(value.get("message", "")), details if isinstance(details, dict) else None)
    error.code, error.name = value["code"], str(data.get("name", error.name))
    error.retryable = data.get("retryable") is True
    return error


# The connection


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise socket.timeout("timed out")
    return remaining


class _Connection:
    """A socket that sends and receives frames."""

    def __init__(self, path: str, deadline: float):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.buffer = bytearray()
        try:
            self.socket.settimeout(_remaining(deadline))
            self.socket.connect(path)
        except BaseException:
            self.socket.close()
            raise

    def send(self, frame: bytes, deadline: float) -> None:
        """Returns when the kernel has all of it: the daemon executes nothing of a part."""
        rest = memoryview(frame)
        while rest:
            self.socket.settimeout(_remaining(deadline))
            rest = rest[self.socket.send(rest):]

    def receive(self, deadline: float) -> Any:
        """The next message. EOFError if the daemon has closed the connection."""
        self._fill(4, deadline)
        length = int.from_bytes(self.buffer[:4], "big")
        if length > LONGEST_FRAME:
            raise ProtocolViolation(f"a frame of {length} bytes")
        self._fill(4 + length, deadline)
        body = bytes(self.buffer[4:4 + length])
        del self.buffer[:4 + length]
        try:
            return json.loads(body.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ProtocolViolation(f"a frame that is not valid JSON: {error}") from error

    def _fill(self, count: int, deadline: float) -> None:
        # What is held grows with what has come, whatever a header says.
        while len(self.buffer) < count:
            self.socket.settimeout(_remaining(deadline))
            part = self.socket.recv(min(max(count - len(self.buffer), 1 << 16), 1 << 20))
            if not part:
                raise EOFError("the daemon closed the connection")
            self.buffer += part

    def shut_down(self) -> None:
        """Ends what another thread waits for."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


class Client:
    """A connection to the daemon, which is made with the first call, and again after it was lost.

    Where no daemon has replied so far a call fails at once; later ones wait for a daemon that is being restarted.
    """

    def __init__(
        self, path: Optional[str] = None, *, timeout: float = 30, name: str = "crudd.py",
        traceparent: Optional[Callable[[], Optional[str]]] = None,
    ):
        """
        path: the daemon's socket; by default `$CRUDD_SOCKET`, else `/run/crudd/crudd.sock`.
        timeout: how many seconds a call may take, all its attempts included.
        name: what the client calls itself in the daemon's log and in `crudctl sessions`.
        traceparent: returns the trace that the caller is in, as of W3C Trace Context, or None. It is asked for each
            call, in the thread of the caller, and the daemon writes it to its log.
        """
        self.path = path or os.environ.get("CRUDD_SOCKET") or DEFAULT_PATH
        self.timeout = timeout
        self.name = name
        self.traceparent = traceparent
        # The daemon's limits by their names, as of the latest connection.
        self.limits: dict = {}
        self._lock = threading.Lock()
        self._connection: Optional[_Connection] = None
        self._has_connected = False
        self._is_closed = False
        self._last_id = 0
        self._local = threading.local()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. A call of another thread fails, and so do all later ones."""
        self._is_closed = True
        connection = self._connection
        if connection:
            connection.shut_down()
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    # Methods

    def collection(self, name: str) -> Collection:
        """The records of a collection. Nothing is sent yet."""
        return Collection(self, name)

    def collections(self) -> list:
        """The collections that the caller may read: dictionaries with `name`, `backend`, `format`, `indexes`."""
        return _member(self.call("collection.list"), "collections")

    def ping(self) -> None:
        """Fails where no daemon replies."""
        self.call("daemon.ping")

    def transaction(self) -> Batch:
        """Operations that take effect together or not at all; see `Batch`."""
        return Batch(self, True)

    def batch(self) -> Batch:
        """Operations that are sent together, each with an outcome of its own; see `Batch`."""
        return Batch(self, False)

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """All calls of this thread within the block have so many seconds together, instead of `timeout` each."""
        outer = getattr(self._local, "deadline", None)
        own = time.monotonic() + seconds
        self._local.deadline = own if outer is None else min(own, outer)
        try:
            yield
        finally:
            self._local.deadline = outer

    def call(self, method: str, params: Optional[dict] = None, *, timeout: Optional[float] = None) -> Any:
        """Calls any method of the protocol and returns its result."""
        local = getattr(self._local, "deadline", None)
        if timeout is None and local is not None:
            deadline = local
        else:
            deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
            deadline = deadline if local is None else min(deadline, local)
        if not self._lock.acquire(timeout=min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)):
            raise TimedOut(f"{method} was not sent in time: another thread's call was in flight")
        try:
            return self._call(method, params or {}, deadline)
        finally:
            if self._is_closed:
                self._drop()
            self._lock.release()

    # Calls, one at a time

    def _call(self, method: str, params: dict, deadline: float) -> Any:
        failures = 0
        trace = self.traceparent() if self.traceparent else None
        members = {"method": method, "traceparent": trace} if trace else {"method": method}
        while True:
            self._last_id += 1
            number = self._last_id
            # Before anything is sent: what is not valid JSON is the caller's error.
            body = _json({"jsonrpc": "2.0", "id": number, **members, "params": params})
            is_sent = False
            try:
                self._connect(deadline)
                connection = self._connection
                if connection is None:
                    raise EOFError("the client was closed")
                maximum = self.limits.get("frame_bytes", LONGEST_FRAME)
                if len(body) > maximum:
                    raise LimitExceeded(
                        f"{method} is longer than the {maximum} bytes that the daemon accepts",
                        {"limit": "frame_bytes", "maximum": maximum})
                connection.send(_frame(body), deadline)
                is_sent = True
                return self._result(connection.receive(deadline), number)
            except CruddError as error:
                # Its outcome is unknown where what came is not its reply; any other error is its reply, or it was not
                # sent.
                if isinstance(error, ProtocolViolation):
                    self._drop()
                    if is_sent and method not in READING:
                        raise OutcomeUnknown(f"{method} was sent, but got no valid reply; {_UNKNOWN}") from error
                raise
            except socket.timeout as error:
                self._drop()
                if is_sent and method not in READING:
                    raise OutcomeUnknown(f"{method} got no reply in time; {_UNKNOWN}") from error
                raise TimedOut(f"{method} {'got no reply' if is_sent else 'could not be sent'} in time") from error
            except (OSError, EOFError) as error:
                rejection = None if is_sent else self._rejection()
                self._drop()
                if rejection:
                    raise rejection from error
                if is_sent and method not in READING:
                    raise OutcomeUnknown(f"{method} was sent, but the connection was lost; {_UNKNOWN}") from error
                if self._is_closed:
                    raise Closed("the client is closed") from error
                failures += 1
                _pause(failures, deadline, method, error)
            except BaseException:
                # A reply that comes later must not be taken for that of another call.
                self._drop()
                raise

    def _connect(self, deadline: float) -> None:
        """Sees that there is a connection. OSError or EOFError: it may be tried again."""
        if self._is_closed:
            raise Closed("the client is closed")
        if self._connection:
            return
        try:
            self._connection = _Connection(self.path, deadline)
            hello = {"jsonrpc": "2.0", "id": 0, "method": "session.hello",
                     "params": {"client": self.name, "protocol": PROTOCOL}}
            self._connection.send(_frame(_json(hello)), deadline)
            result = self._result(self._connection.receive(deadline), 0)
        except Unavailable as error:
            self._drop()
            if self._has_connected:
                raise ConnectionError(str(error)) from error
            raise
        except (OSError, EOFError) as error:
            rejection = self._rejection()
            self._drop()
            if rejection:
                raise rejection from error
            if isinstance(error, OSError) and error.errno == errno.EACCES:
                raise PermissionDenied(f"the socket {self.path} may not be opened: {error}") from error
            # EAGAIN: the daemon is there, and its queue of new connections is full.
            if self._has_connected or isinstance(error, OSError) and error.errno == errno.EAGAIN:
                raise
            raise Unavailable(f"no daemon replies at {self.path}: {error}; is crudd running?") from error
        except BaseException:
            self._drop()
            raise
        if not isinstance(result, dict) or result.get("protocol") != PROTOCOL:
            self._drop()
            raise Unsupported(f"the daemon at {self.path} does not speak version {PROTOCOL} of the protocol")
        limits = result.get("limits")
        self.limits = limits if isinstance(limits, dict) else {}
        self._has_connected = True

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def _rejection(self) -> Optional[CruddError]:
        """The error with which the daemon has closed the connection before it received a whole frame."""
        try:
            if not self._connection:
                return None
            message = self._connection.receive(time.monotonic() + 0.1)
            return _error(message["error"]) if message["id"] is None else None
        except (CruddError, EOFError, KeyError, OSError, TypeError):
            return None

    def _result(self, message: Any, number: int) -> Any:
        """The result of the response to a request."""
        if not isinstance(message, dict) or "id" not in message or ("result" in message) == ("error" in message):
            raise ProtocolViolation("a message that is no response")
        identity = message["id"]
        if type(identity) is int and identity == number:
            if "error" in message:
                raise _error(message["error"])
            return message["result"]
        if identity is None and "error" in message:
            # The daemon has not executed the frame, and may have closed the connection.
            error = _error(message["error"])
            if isinstance(error, (ParseError, InvalidRequest, LimitExceeded, Unavailable, PermissionDenied)):
                self._drop()
                raise error
        raise ProtocolViolation(f"a reply to a request that was not sent: {identity!r}")

    def _sibling(self) -> Client:
        """A client with the same options and another connection."""
        sibling = Client(self.path, timeout=self.timeout, name=self.name, traceparent=self.traceparent)
        sibling._has_connected = self._has_connected
        return sibling


_UNKNOWN = "it may or may not have been applied"


def _pause(failures: int, deadline: float, what: str, error: BaseException) -> None:
    """Waits before another attempt: longer each time, and random, lest all clients come back together."""
    pause = min(0.01 * 2 ** min(failures - 1, 7), 1) * random.uniform(0.5, 1)
    if time.monotonic() + pause >= deadline:
        raise TimedOut(f"{what} could not be sent in time: {error}") from error
    time.sleep(pause)


# Records


@dataclasses.dataclass(frozen=True)
class Record:
    """A record as it was read. `item` is None where `fields` was empty."""

    id: str
    item: Any
    revision: str
    expires_at: Optional[datetime.datetime] = None


@dataclasses.dataclass(frozen=True)
class Upserted:
    """What an upsert has done."""

    revision: str
    created: bool


@dataclasses.dataclass(frozen=True)
class Page:
    """A part of a query's result. `cursor` is None on the last page; `corrupt` has the ids that were left out since
    their stored bytes cannot be decoded."""

    records: list
    cursor: Optional[str]
    corrupt: list


def _record(value: Any) -> Record:
    try:
        return Record(value["id"], value.get("item"), value["revision"], _instant(value.get("expiresAt")))
    except (AttributeError, KeyError, TypeError) as error:
        raise ProtocolViolation("a record lacks a member") from error


def _instant(milliseconds: Optional[int]) -> Optional[datetime.datetime]:
    if milliseconds is None:
        return None
    # Not by a float, which rounds.
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(milliseconds=milliseconds)


def _expiry(ttl: Any, expires_at: Any) -> dict:
    """The parameters that say when a record expires."""
    if isinstance(ttl, datetime.timedelta):
        ttl = ttl.total_seconds()
    if isinstance(expires_at, datetime.datetime):
        if expires_at.tzinfo is None:
            raise ValueError("expires_at must have a time zone")
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        expires_at = (expires_at - start) // datetime.timedelta(milliseconds=1)
    return {"ttl": ttl, "expiresAt": _UNSET if expires_at is None else expires_at}


def _params(**params: Any) -> dict:
    return {name: value for name, value in params.items() if value is not _UNSET}


def _given(value: Any) -> Any:
    return _UNSET if value is None else value


class _Writer:
    """Writes: at once, or as operations of a batch. `ttl` is a number of seconds or a timedelta, `expires_at` a
    datetime with a time zone or a number of milliseconds since 1970; with neither a record does not expire."""

    def _write(self, operation: str, params: dict) -> Any:
        raise NotImplementedError

    def create(self, id: str, item: Any, *, ttl: Any = _UNSET, expires_at: Any = None) -> Any:
        """Stores a new record and returns its revision. RecordExists if there is one."""
        return self._write("create", _params(id=id, item=item, **_expiry(ttl, expires_at)))

    def update(
        self, id: str, item: Any, *, if_revision: Optional[str] = None, ttl: Any = _UNSET, expires_at: Any = None
    ) -> Any:
        """Replaces the item of a record and returns the new revision. RecordNotFound, RevisionMismatch."""
        return self._write(
            "update", _params(id=id, item=item, ifRevision=_given(if_revision), **_expiry(ttl, expires_at)))

    def upsert(
        self, id: str, item: Any, *, if_revision: Optional[str] = None, ttl: Any = _UNSET, expires_at: Any = None
    ) -> Any:
        """Stores a record, whether there is one or not; returns `Upserted`."""
        return self._write(
            "upsert", _params(id=id, item=item, ifRevision=_given(if_revision), **_expiry(ttl, expires_at)))

    def delete(self, id: str, *, if_revision: Optional[str] = None) -> Any:
        """Deletes a record. RecordNotFound, RevisionMismatch."""
        return self._write("delete", _params(id=id, ifRevision=_given(if_revision)))

    def patch(
        self, id: str, patch: Any = _UNSET, *, increment: Optional[dict] = None, minimum: Optional[dict] = None,
        maximum: Optional[dict] = None, append: Optional[dict] = None, add: Optional[dict] = None,
        remove: Optional[dict] = None, if_revision: Optional[str] = None, upsert: bool = False, ttl: Any = _UNSET,
        expires_at: Any = None,
    ) -> Any:
        """Changes parts of a record, atomically, and returns it as a `Record`.

        patch: a JSON Merge Patch; None as a value removes the member. The others are operations on single members:
        `increment={"visits": 1}`, `add={"tags": ["new"]}`. With `upsert` a missing record starts as `{}`; `ttl=None`
        removes the expiry.
        """
        return self._write(
            "patch",
            _params(
                id=id, patch=patch, increment=_given(increment), minimum=_given(minimum), maximum=_given(maximum),
                append=_given(append), add=_given(add), remove=_given(remove), ifRevision=_given(if_revision),
                upsert=True if upsert else _UNSET, **_expiry(ttl, expires_at)))


def _member(result: Any, name: str) -> Any:
    """A member that the result of a read must have."""
    if not isinstance(result, dict) or name not in result:
        raise ProtocolViolation(f"a result without {name}")
    return result[name]


def _written(operation: str, id: str, result: Any) -> Any:
    """What a write returns."""
    try:
        if operation in ("create", "update", "touch"):
            return result["revision"]
        if operation == "upsert":
            return Upserted(result["revision"], result["created"])
        return Record(id, result["item"], result["revision"]) if operation == "patch" else None
    except (KeyError, TypeError) as error:
        raise OutcomeUnknown(f"the reply to {operation} lacks a member; {_UNKNOWN}") from error


class Collection(_Writer):
    """The records of a collection."""

    def __init__(self, client: Client, name: str):
        self.client = client
        self.name = name

    def _call(self, method: str, params: dict, timeout: Optional[float] = None) -> Any:
        return self.client.call(method, {"collection": self.name, **params}, timeout=timeout)

    def _write(self, operation: str, params: dict) -> Any:
        return _written(operation, params["id"], self._call(f"record.{operation}", params))

    # Writes beside those of a batch

    def touch(self, id: str, *, ttl: Any = _UNSET, expires_at: Any = None, if_revision: Optional[str] = None) -> str:
        """Sets when a record expires and nothing else (`ttl=None`: never); returns the new revision."""
        return self._write("touch", _params(id=id, ifRevision=_given(if_revision), **_expiry(ttl, expires_at)))

    def modify(self, id: str, change: Callable[[Any], Any]) -> Record:
        """Reads a record, has `change` return its new item, and stores that; again, where another client was faster,
        until the call's time is over. OutcomeUnknown is raised: whether it was stored is for the caller to find out."""
        limit = getattr(self.client._local, "deadline", None)
        with self.client.deadline(self.client.timeout) if limit is None else contextlib.nullcontext():
            while True:
                record = self.read_record(id)
                item = change(record.item)
                with contextlib.suppress(RevisionMismatch):
                    # What expires is to expire as before.
                    expiry = record.expires_at
                    return Record(
                        id, item, self.update(id, item, if_revision=record.revision, expires_at=expiry), expiry)

    def delete_matching(
        self, filter: Any = None, *, prefix: Optional[str] = None, all: bool = False, timeout: Optional[float] = None
    ) -> int:
        """Deletes the records that match, and returns how many; not atomic. After OutcomeUnknown
        `details["deleted"]`, where it is there, is the number of those that are known to be deleted."""
        params = _params(filter=_given(filter), prefix=_given(prefix), all=True if all else _UNSET)
        result = self._call("record.deleteMatching", params, timeout)
        if not isinstance(result, dict) or "deleted" not in result:
            raise OutcomeUnknown(f"the reply to record.deleteMatching lacks a member; {_UNKNOWN}")
        return result["deleted"]

    # Reads

    def read(self, id: str) -> Any:
        """The item of a record. RecordNotFound."""
        return self.read_record(id).item

    def read_record(self, id: str, *, fields: Optional[Iterable[str]] = None) -> Record:
        """A record with its revision. With `fields` its item has only these paths (`["name", "address.city"]`)."""
        return _record(self._call("record.read", _params(id=id, fields=_UNSET if fields is None else list(fields))))

    def get(self, id: str, default: Any = None) -> Any:
        """The item of a record; `default` if there is none."""
        try:
            return self.read(id)
        except RecordNotFound:
            return default

    def exists(self, id: str) -> bool:
        """Whether there is a record."""
        return _member(self._call("record.exists", {"id": id}), "exists")

    def read_many(self, ids: Iterable[str]) -> dict:
        """The records with these ids, by id; those without one, or with a corrupt one, are left out."""
        ids, found = list(ids), {}
        size = self.client.limits.get("batch", 1000)
        for start in range(0, len(ids), size):
            for value in _member(self._call("record.readMany", {"ids": ids[start:start + size]}), "records"):
                record = _record(value)
                found[record.id] = record
        return found

    def count(self, filter: Any = None, *, prefix: Optional[str] = None) -> int:
        """How many records match."""
        return _member(self._call("record.count", _params(filter=_given(filter), prefix=_given(prefix))), "count")

    def page(
        self, filter: Any = None, *, prefix: Optional[str] = None, sort: Any = None,
        fields: Optional[Iterable[str]] = None, limit: Optional[int] = None, cursor: Optional[str] = None,
    ) -> Page:
        """A part of the records that match; the next one is that at its cursor, with the same filter, prefix and sort.

        filter: a condition (`where("age") >= 18`), or the JSON encoding of CQL2 as dictionaries.
        sort: paths, of which a `-` in front reverses the order (`["-age", "name"]`), or a list as in the protocol;
        without it records come by id.
        """
        if isinstance(sort, str):
            sort = [sort]
        if sort is not None:
            sort = [_key(key) if isinstance(key, str) else key for key in sort]
        result = self._call(
            "record.query",
            _params(
                filter=_given(filter), prefix=_given(prefix), sort=_given(sort), limit=_given(limit),
                cursor=_given(cursor), fields=_UNSET if fields is None else list(fields)))
        return Page(
            [_record(value) for value in _member(result, "records")], result.get("cursor"), result.get("corrupt", []))

    def query(
        self, filter: Any = None, *, prefix: Optional[str] = None, sort: Any = None,
        fields: Optional[Iterable[str]] = None, limit: Optional[int] = None, page_size: int = 1000,
    ) -> Iterator[Record]:
        """The records that match, read page by page during the iteration; parameters as of `page`.

        limit: of how many records at most. Records that cannot be decoded are left out; `page` names them.
        """
        cursor, fields = None, None if fields is None else list(fields)
        while limit is None or limit > 0:
            size = page_size if limit is None else min(limit, page_size)
            page = self.page(filter, prefix=prefix, sort=sort, fields=fields, limit=size, cursor=cursor)
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return
            limit = None if limit is None else limit - len(page.records)

    def changes(
        self, after: str = "start", *, filter: Any = None, prefix: Optional[str] = None,
        fields: Optional[Iterable[str]] = None, items: bool = True, follow: bool = True, wait: float = 15,
    ) -> Feed:
        """What changes in the collection, one change after another; see `Feed`.

        after: `cursor` of the last change that was processed, `"start"` (every record, and then what changes) or
        `"now"`.
        follow: whether to wait for other changes at the end; else the iteration ends there.
        """
        params = _params(
            filter=_given(filter), prefix=_given(prefix), fields=_UNSET if fields is None else list(fields),
            items=_UNSET if items else False)
        return Feed(self, params, after, follow, wait)


def _key(path: str) -> dict:
    """An element of `sort`."""
    return {"property": path[1:], "order": "desc"} if path.startswith("-") else {"property": path}


# Batches


class Batch:
    """Operations that are executed in order when the block ends, unless that raises.

        with client.transaction() as batch:
            batch["accounts"].check("a", revision)
            batch["accounts"].patch("a", increment={"balance": -5})
            batch["accounts"].patch("b", increment={"balance": 5})

    `results` then has what each operation has returned. In a transaction all take effect or none does: the first that
    fails is raised, and `details["index"]` is its number. Otherwise the result of one that failed is its error.
    """

    def __init__(self, client: Client, is_atomic: bool):
        self.client = client
        self.is_atomic = is_atomic
        self.operations: list = []
        self.results: list = []

    def __getitem__(self, collection: str) -> _BatchCollection:
        return _BatchCollection(self, collection)

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is None:
            self.commit()

    def commit(self, *, timeout: Optional[float] = None) -> list:
        """Executes the operations so far and returns their results."""
        operations, self.operations, self.results = self.operations, [], []
        if not operations:
            return []
        params = {"operations": operations, "atomic": True} if self.is_atomic else {"operations": operations}
        result = self.client.call("record.batch", params, timeout=timeout)
        outcomes = result.get("results") if isinstance(result, dict) else None
        if not isinstance(outcomes, list) or len(outcomes) != len(operations):
            raise OutcomeUnknown(f"the reply to record.batch lacks results; {_UNKNOWN}")
        for operation, outcome in zip(operations, outcomes):
            try:
                if "error" in outcome:
                    self.results.append(_error(outcome["error"]))
                else:
                    self.results.append(_written(operation["op"], operation["id"], outcome["result"]))
            except (KeyError, TypeError, ProtocolViolation) as error:
                raise OutcomeUnknown(f"the reply to record.batch lacks a member; {_UNKNOWN}") from error
        return self.results


class _BatchCollection(_Writer):
    def __init__(self, batch: Batch, name: str):
        self._batch = batch
        self._name = name

    def _write(self, operation: str, params: dict) -> None:
        self._batch.operations.append({"op": operation, "collection": self._name, **params})

    def check(self, id: str, revision: Optional[str]) -> None:
        """Fails unless the record has this revision; with None unless there is no record."""
        self._write("check", {"id": id, "ifRevision": revision})


# Feeds


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a record, with its newest state.

    kind: `"saved"`; `"removed"`: deleted or expired; `"unmatched"`: the filter is not true for it, or not any more.
    cursor: where to begin again if this was the last change that was processed. It moves with the last change of a
    page; those that were processed before in the same page come once more.
    """

    id: str
    kind: str
    cursor: str
    item: Any = None
    revision: Optional[str] = None
    expires_at: Optional[datetime.datetime] = None


class Feed:
    """The changes of a collection, one after another, without an end. It has a connection of its own.

    It survives lost connections and restarts of the daemon, and waits while the daemon or the backend is unavailable.
    CursorExpired ends it: begin again at `"start"`. `close` ends it from any thread.
    """

    def __init__(self, collection: Collection, params: dict, after: str, follow: bool, wait: float):
        self.cursor = after
        self._client = collection.client._sibling()
        self._params = {"collection": collection.name, **params}
        self._follow = follow
        self._wait = wait
        self._changes: list = []
        self._is_over = False
        self._closed = threading.Event()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the iteration, and the wait of another thread."""
        self._closed.set()
        self._client.close()

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> Change:
        change = self.poll()
        if change is None:
            raise StopIteration
        return change

    def poll(self, timeout: Optional[float] = None) -> Optional[Change]:
        """The next change; None if there is none within so many seconds, or not any more."""
        end = None if timeout is None else time.monotonic() + timeout
        failures = 0
        while not self._changes:
            if self._is_over or self._closed.is_set():
                self.close()
                return None
            wait = self._wait if end is None else min(self._wait, max(0.0, end - time.monotonic()))
            grace = self._client.timeout if end is None else min(self._client.timeout, 5)
            try:
                self._fetch(wait if self._follow else 0, grace)
                failures = 0
            except Closed:
                continue
            except (Unavailable, LimitExceeded) as error:
                # The daemon has no room for another one that waits.
                is_full = error.details.get("limit") in ("followers_per_session", "session_bytes")
                if not is_full and (isinstance(error, LimitExceeded) or not self._client._has_connected):
                    raise
                failures += 1
                self._closed.wait(min(0.01 * 2 ** min(failures, 8), 2) * random.uniform(0.5, 1))
            if not self._changes and end is not None and time.monotonic() >= end:
                return None
        return self._changes.pop(0)

    def _fetch(self, wait: float, grace: float) -> None:
        params = {**self._params, "after": self.cursor}
        # A "now" that waited and was sent again, after a lost connection, would be a later one.
        if wait > 0 and self.cursor != "now":
            params["wait"] = wait
        page = self._client.call("collection.changes", params, timeout=wait + grace)
        try:
            values, cursor = page["changes"], page["cursor"]
            self._changes = [
                Change(
                    value["id"],
                    "removed" if value.get("deleted") else "unmatched" if value.get("matches") is False else "saved",
                    cursor if index == len(values) - 1 else self.cursor, value.get("item"), value.get("revision"),
                    _instant(value.get("expiresAt")))
                for index, value in enumerate(values)]
            self._is_over = not self._follow and not page["more"]
        except (AttributeError, KeyError, TypeError) as error:
            raise ProtocolViolation("a page of changes lacks a member") from error
        self.cursor = cursor


# Conditions


class Filter(dict):
    """A condition in the JSON encoding of CQL2. `&`, `|` and `~` combine conditions."""

    def __and__(self, other: dict) -> Filter:
        return Filter(op="and", args=[self, other])

    def __or__(self, other: dict) -> Filter:
        return Filter(op="or", args=[self, other])

    def __invert__(self) -> Filter:
        return Filter(op="not", args=[self])


class where:
    """A property of items, by its path, to be compared with values: `where("address.city") == "Bonn"`."""

    def __init__(self, path: str):
        self._property = {"property": path}

    def _filter(self, operator: str, *arguments: Any) -> Filter:
        return Filter(op=operator, args=[self._property, *arguments])

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, value: Any) -> Filter:  # type: ignore[override]
        return self._filter("=", value)

    def __ne__(self, value: Any) -> Filter:  # type: ignore[override]
        return self._filter("<>", value)

    def __lt__(self, value: Any) -> Filter:
        return self._filter("<", value)

    def __le__(self, value: Any) -> Filter:
        return self._filter("<=", value)

    def __gt__(self, value: Any) -> Filter:
        return self._filter(">", value)

    def __ge__(self, value: Any) -> Filter:
        return self._filter(">=", value)

    def between(self, low: Any, high: Any) -> Filter:
        return self._filter("between", low, high)

    def is_in(self, values: Iterable[Any]) -> Filter:
        return self._filter("in", list(values))

    def is_null(self) -> Filter:
        """True where the property is null or missing."""
        return self._filter("isNull")

    def like(self, pattern: str) -> Filter:
        """`%` is any text, `_` one character, and a backslash escapes both."""
        return self._filter("like", pattern)

    def starts_with(self, text: str) -> Filter:
        return self.like(_escaped(text) + "%")

    def contains(self, text: str) -> Filter:
        return self.like("%" + _escaped(text) + "%")

    def contains_all(self, values: Iterable[Any]) -> Filter:
        """True where the property is an array with all these elements."""
        return self._filter("a_contains", list(values))


def _escaped(text: str) -> str:
    """Text as a part of a pattern."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
