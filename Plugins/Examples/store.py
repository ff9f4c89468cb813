#!/usr/bin/env python3
"""An executable plugin for crudd in Python's standard library: records in one SQLite file.

    backends:
      store:
        command: [/usr/lib/crudd/plugins/store.py]
        options: {path: /var/lib/crudd/store.db}

The protocol is in Sources/CRUDPluginABI/CHILD-PROTOCOL.md. A write is one transaction, synced before its reply is sent.
"""

import json
import os
import secrets
import sqlite3
import struct
import sys
import urllib.parse

ANY = 2**64 - 1  # any storage that is there
CAPABILITIES = ["durable", "transactions", "sequences", "expiry"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS collections (key INTEGER PRIMARY KEY, name TEXT, format TEXT, UNIQUE (name, format));
CREATE TABLE IF NOT EXISTS records (
    collection INTEGER, id BLOB, item BLOB, revision BLOB, expires INTEGER, sequence INTEGER,
    PRIMARY KEY (collection, id)
);
CREATE INDEX IF NOT EXISTS records_by_sequence ON records (collection, sequence);
CREATE INDEX IF NOT EXISTS records_expiring ON records (collection, expires) WHERE expires <> 0;
CREATE TABLE IF NOT EXISTS removed (
    collection INTEGER, sequence INTEGER, id BLOB, at INTEGER, PRIMARY KEY (collection, sequence)
);
CREATE TABLE IF NOT EXISTS history (collection INTEGER PRIMARY KEY, identity INTEGER, forgotten INTEGER);
CREATE TABLE IF NOT EXISTS state (last_sequence INTEGER);
INSERT INTO state SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM state);
CREATE TABLE IF NOT EXISTS storage (identity INTEGER);
INSERT INTO storage SELECT 1 + (random() & 0x3fffffffffffffff) WHERE NOT EXISTS (SELECT 1 FROM storage);
"""


class Failure(Exception):
    """Why the reply to a request is an error."""

    def __init__(self, status, message, pointer=None):
        super().__init__(message)
        self.error = {"status": status, "message": message}
        if pointer is not None:
            self.error["pointer"] = pointer


def checked_path(options):
    """The one option of this plugin."""
    for name in options:
        if name != "path":
            raise Failure("invalid_options", f"there is no option {name}; there is path", f"/{name}")
    path = options.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        pointer = "/path" if "path" in options else ""
        raise Failure("invalid_options", "path must be the absolute path of a file", pointer)
    return path


class Store:
    """A database with the records of all collections. Ids, items and revisions are bytes, compared as such.

    A method gets a request's payload and its parameters. It returns the result, and for `write` the reply's payload;
    `remove_expired` returns what else the result has, and records; `read` and `scan` yield records: their members, and
    the bytes that their lengths stand for.
    """

    def __init__(self, path, expected):
        if expected:
            self.require(path, expected)
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.executescript(SCHEMA)
        self.keys = {}  # crudd's numbers of the collections that are open, and ours

    def query(self, sql, *arguments):
        return self.database.execute(sql, arguments)

    def last_sequence(self):
        return self.query("SELECT last_sequence FROM state").fetchone()[0]

    @staticmethod
    def require(path, expected):
        """Makes sure that this is the file in which crudd has collections, before anything is made or changed."""
        try:
            database = sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=rw", uri=True)
            try:
                found = database.execute("SELECT identity FROM storage").fetchone()
            finally:
                database.close()
        except sqlite3.OperationalError as error:
            if os.path.exists(path) and "no such table" not in str(error):
                raise
            found = None
            if expected == ANY or not os.path.exists(path):
                raise Failure("not_found", f"there is no storage in {path}")
        if expected != ANY and (found is None or found[0] != expected):
            raise Failure("not_found", f"there is another storage in {path}")

    def identity(self):
        """What tells this file from others, and is in every copy of it."""
        return self.query("SELECT identity FROM storage").fetchone()[0]

    # Collections: one for each name and format

    def open_collection(self, payload, collection, name, format, create, sequences, asItIs=False, **_):
        found = self.query("SELECT key FROM collections WHERE name = ? AND format = ?", name, format).fetchone()
        if found:
            self.keys[collection] = found[0]
        elif create:
            created = self.query("INSERT INTO collections (name, format) VALUES (?, ?)", name, format)
            self.keys[collection] = created.lastrowid
        else:
            raise Failure("not_found", "there is no such collection")
        key = self.keys[collection]
        if asItIs:
            return {}
        if sequences:
            self.query("INSERT OR IGNORE INTO history VALUES (?, ?, 0)", key, 1 + secrets.randbelow(2**63 - 1))
        elif self.history(key):
            self.query("BEGIN IMMEDIATE")
            self.forget(key)
            self.commit()
        return {}

    def forget(self, key):
        for table in ("history", "removed"):
            self.query(f"DELETE FROM {table} WHERE collection = ?", key)

    def drop_collection(self, payload, name, **_):
        gone = [key for (key,) in self.query("SELECT key FROM collections WHERE name = ?", name)]
        if not gone:
            raise Failure("not_found", "there is no such collection")
        self.query("BEGIN IMMEDIATE")
        for key in gone:
            self.query("DELETE FROM records WHERE collection = ?", key)
            self.query("DELETE FROM collections WHERE key = ?", key)
            self.forget(key)
        self.commit()
        self.keys = {number: key for number, key in self.keys.items() if key not in gone}
        return {}

    def list_collections(self, payload, **_):
        return {"names": [name for (name,) in self.query("SELECT DISTINCT name FROM collections")]}

    def key(self, collection):
        """Our number of a collection by crudd's, which does not ask for one that is not open."""
        if collection not in self.keys:
            raise Failure("internal", f"collection {collection} is not open")
        return self.keys[collection]

    # Reading. A record whose `expires` has come is not there.

    COLUMNS = "id, item, revision, expires, sequence"

    def read(self, payload, collection, ids, items, now, **_):
        for index, id in enumerate([payload.take(length) for length in ids]):
            if found := self.find(collection, id, now):
                yield self.record({"index": index}, [], *found[1:], items)

    def scan(self, payload, collection, order, reverse, limit, items, now, **bounds):
        column, where, values = self.condition(payload, collection, order, now, **bounds)
        if column == "id" and (after := payload.take(bounds["afterId"])):
            where += " AND id < ?" if reverse else " AND id > ?"
            values.append(after)
        sql = f"SELECT {self.COLUMNS} FROM records WHERE {where}"
        if column == "sequence":
            removals = "SELECT collection, id, 0 AS expires, sequence FROM removed"
            sql += f" UNION ALL SELECT id, NULL, NULL, expires, sequence FROM ({removals}) WHERE {where}"
            values += values
        rows = self.query(f"{sql} ORDER BY {column}{' DESC' if reverse else ''} LIMIT ?", *values, limit or -1)
        for id, *rest in rows:
            yield self.record({"id": len(id)}, [id], *rest, items)

    def count(self, payload, collection, order, limit, now, **bounds):
        _, where, values = self.condition(payload, collection, order, now, **bounds)
        rows = f"SELECT 1 FROM records WHERE {where} LIMIT ?"
        return {"count": self.query(f"SELECT count(*) FROM ({rows})", *values, limit or -1).fetchone()[0]}

    def condition(self, payload, collection, order, now, **bounds):
        """The column that a range orders by, its condition in SQL, and the values in it."""
        where, values = "collection = ? AND (expires = 0 OR expires > ?)", [self.key(collection), now]
        if bounds.get("unsequenced"):
            where, order = where + " AND sequence = 0", "id"
        if order == "id":
            lower, upper = payload.take(bounds["lower"]), payload.take(bounds["upper"])
        elif order == "sequence":
            lower, upper = max(1, bounds["lowerSequence"]), bounds["upperSequence"]
        else:
            raise Failure("unsupported", "scans by key come with the capability indexes")
        column = order
        if lower:
            where += f" AND {column} >= ?"
            values.append(lower)
        if upper:
            where += f" AND {column} < ?"
            values.append(upper)
        return column, where, values

    def find(self, collection, id, now):
        return self.query(
            f"SELECT {self.COLUMNS} FROM records WHERE collection = ? AND id = ? AND (expires = 0 OR expires > ?)",
            self.key(collection), id, now,
        ).fetchone()

    @staticmethod
    def record(members, output, item, revision, expires, sequence, items):
        if revision is None:
            return members | {"removed": True, "sequence": sequence}, output
        if items:
            members["item"] = len(item)
            output.append(item)
        members["revision"] = len(revision)
        output.append(revision)
        members["expiresAt"] = expires
        members["sequence"] = sequence
        return members, output

    # Writing

    def write(self, payload, mutations, now, atomic=False, **_):
        self.query("BEGIN IMMEDIATE")
        outcomes, output = [], []
        for mutation in mutations:
            outcomes.append(self.apply(payload, output, now, atomic, **mutation))
            if atomic and outcomes[-1]["status"] != "ok":
                self.query("ROLLBACK")
                outcomes += [{"status": "ok"}] * (len(mutations) - len(outcomes))
                return {"outcomes": outcomes}, output
        self.commit(max((mutation.get("sequence", 0) for mutation in mutations), default=0))
        return {"outcomes": outcomes}, output

    def commit(self, last=0):
        """Commits what has used sequence numbers up to `last`."""
        if last:
            self.query("UPDATE state SET last_sequence = max(last_sequence, ?)", last)
        try:
            self.query("COMMIT")
        except sqlite3.Error as error:
            # Part of it may be on the disk; whether it counts shows when the file is opened again.
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
                raise Failure("outcome_unknown", str(error)) from error
            raise

    def apply(
        self, payload, output, now, atomic, collection, kind, id, precondition, expected=0, item=0, revision=0,
        expiresAt=0, sequence=0, **_,
    ):
        id, expected, item, revision = (payload.take(length) for length in (id, expected, item, revision))
        if kind not in ("put", "remove", "check") or (kind == "check" and not atomic):
            return {"status": "unsupported"}
        found = self.find(collection, id, now)
        if found and precondition == "absent":
            return {"status": "exists"}
        if not found and (kind == "remove" or precondition in ("present", "revision")):
            return {"status": "not_found"}
        if precondition == "revision" and found[2] != expected:
            output.append(found[2])
            return {"status": "mismatch", "revision": len(found[2])}
        if kind == "put":
            values = self.key(collection), id, item, revision, expiresAt, sequence
            self.query("REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", *values)
            return {"status": "ok", "replaced": found is not None}
        if kind == "remove":
            self.remove(self.key(collection), id, sequence, now)
        return {"status": "ok"}

    # Expiry and removals. A collection with a row in `history` remembers what was removed

    def remove(self, key, id, sequence, now):
        self.query("DELETE FROM records WHERE collection = ? AND id = ?", key, id)
        if self.history(key):
            self.query("INSERT INTO removed VALUES (?, ?, ?, ?)", key, sequence, id, now)

    def remove_expired(self, payload, collection, limit, firstSequence, now, **_):
        expiring = f"FROM records WHERE collection = {self.key(collection)} AND expires <> 0"
        expired = self.query(f"SELECT id {expiring} AND expires <= ? ORDER BY expires, id LIMIT ?", now, limit)
        removed = [(id, firstSequence + number) for number, (id,) in enumerate(expired.fetchall())]
        self.query("BEGIN IMMEDIATE")
        for id, sequence in removed:
            self.remove(self.key(collection), id, sequence, now)
        self.commit(removed[-1][1] if removed else 0)
        records = (({"id": len(id), "removed": True, "sequence": sequence}, [id]) for id, sequence in removed)
        return {"nextExpiry": self.query(f"SELECT min(expires) {expiring}").fetchone()[0] or 0}, records

    def history(self, key):
        return self.query("SELECT identity, forgotten FROM history WHERE collection = ?", key).fetchone()

    def trim_history(self, payload, collection, before, limit, **_):
        key = self.key(collection)
        if not self.history(key):
            raise Failure("unsupported", "the collection was not opened with sequences")
        first = "SELECT sequence, at FROM removed WHERE collection = ? ORDER BY sequence LIMIT ?"
        old = [sequence for sequence, at in self.query(first, key, limit) if at < before]
        self.query("BEGIN IMMEDIATE")
        for sequence in old:
            self.query("DELETE FROM removed WHERE collection = ? AND sequence = ?", key, sequence)
        self.query("UPDATE history SET forgotten = max(forgotten, ?) WHERE collection = ?", max(old, default=0), key)
        self.commit()
        identity, forgotten = self.history(key)
        return {"identity": identity, "forgotten": forgotten, "trimmed": len(old)}


class Payload:
    """The bytes behind the head of a request, taken in the order in which the head gives their lengths."""

    def __init__(self, content):
        self.content = content
        self.position = 0

    def take(self, length):
        self.position += length
        return self.content[self.position - length : self.position]


class Channel:
    """Frames to and from crudd. Whatever else writes to standard output is sent to the log instead."""

    PART_BYTES = 1 << 20

    def __init__(self):
        self.longest = 1 << 20  # the longest frame, until crudd says how long it may be
        self.input = sys.stdin.buffer
        self.output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def receive(self):
        """Head and payload of the next frame; None at the end."""
        lengths = self.input.read(8)
        if len(lengths) < 8:
            return None
        size, head_size = struct.unpack(">II", lengths)
        head = json.loads(self.input.read(head_size))
        return head, Payload(self.input.read(size - 4 - head_size))

    def send(self, payload=(), **head):
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        payload = b"".join(payload)
        size = 4 + len(text) + len(payload)
        if size > self.longest:
            raise Failure("corrupt", "there is a record that does not fit a frame")
        self.output.write(struct.pack(">II", size, len(text)) + text + payload)
        self.output.flush()

    def send_records(self, id, records, **others):
        """A reply with records, in frames of a modest size."""
        part, payload, size = [], [], 0
        for members, texts in records:
            if size > self.PART_BYTES:
                self.send(payload, id=id, result={"records": part}, more=True)
                part, payload, size = [], [], 0
            part.append(members)
            payload += texts
            size += 128 + sum(len(text) for text in texts)
        self.send(payload, id=id, result={"records": part, **others})


class Plugin:
    # The methods whose result is an object without records.
    RESULTS = {
        "openCollection": Store.open_collection, "dropCollection": Store.drop_collection,
        "listCollections": Store.list_collections, "count": Store.count, "trimHistory": Store.trim_history,
    }

    def __init__(self):
        self.channel = Channel()
        self.store = None

    def run(self):
        while frame := self.channel.receive():
            head, payload = frame
            if "id" not in head:
                continue  # crudd does not want the rest of a reply, which has been sent already
            try:
                self.reply(head["id"], head["method"], head["params"], payload)
            except Failure as failure:
                self.fail(head["id"], failure.error)
            except sqlite3.Error as error:
                self.fail(head["id"], {"status": self.status(error), "message": str(error)})

    def reply(self, id, method, params, payload):
        if method == "hello":
            if params["protocol"] != 2:
                raise Failure("unsupported", "this plugin speaks version 2 of the child protocol")
            self.channel.longest = params["limits"]["frameBytes"]
            result = {"protocol": 2, "name": "store", "version": "2.0", "capabilities": CAPABILITIES}
            self.channel.send(id=id, result=result)
        elif method == "checkOptions":
            checked_path(params["options"])
            self.channel.send(id=id, result={})
        elif method == "open":
            self.store = Store(checked_path(params["options"]), params.get("expected"))
            result = {"lastSequence": self.store.last_sequence(), "identity": self.store.identity()}
            self.channel.send(id=id, result=result)
        elif method in self.RESULTS:
            self.channel.send(id=id, result=self.RESULTS[method](self.store, payload, **params))
        elif method in ("read", "scan"):
            self.channel.send_records(id, getattr(self.store, method)(payload, **params))
        elif method == "write":
            result, output = self.store.write(payload, **params)
            self.channel.send(output, id=id, result=result)
        elif method == "removeExpired":
            others, records = self.store.remove_expired(payload, **params)
            self.channel.send_records(id, records, **others)
        else:
            raise Failure("unsupported", f"there is no method {method}")

    def fail(self, id, error):
        """What was begun and not committed is undone: an error says that nothing was applied."""
        if self.store and self.store.database.in_transaction:
            self.store.query("ROLLBACK")
        self.channel.send(id=id, error=error)

    @staticmethod
    def status(error):
        return {
            "SQLITE_FULL": "no_space",
            "SQLITE_BUSY": "unavailable",
            "SQLITE_READONLY": "unavailable",
            "SQLITE_CANTOPEN": "unavailable",
            "SQLITE_CORRUPT": "corrupt",
            "SQLITE_NOTADB": "corrupt",
        }.get(getattr(error, "sqlite_errorname", ""), "internal")


if __name__ == "__main__":
    Plugin().run()
