#!/usr/bin/env python3
"""An executable plugin for crudd in Python's standard library: records in one SQLite file.

    backends:
      store:
        command: [/usr/lib/crudd/plugins/store.py]
        options: {path: /var/lib/crudd/store.db}

The protocol is in Sources/CRUDPluginABI/CHILD-PROTOCOL.md. A write is one transaction, synced before it is answered.
"""

import base64
import json
import os
import sqlite3
import struct
import sys

CAPABILITIES = ["durable", "transactions"]


class Failure(Exception):
    """Why a request is answered with an error."""

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
        raise Failure("invalid_options", "path must be the absolute path of a file", "/path" if "path" in options else "")
    return path


def stored(record):
    """The item of a mutation as SQLite keeps it: JSON as text, anything else as bytes."""
    return record["text"] if "text" in record else base64.b64decode(record["bytes"])


def spelled(item):
    """A stored item as a member of a record."""
    if isinstance(item, str):
        return {"text": item}
    return {"bytes": base64.b64encode(item).decode()}


class Store:
    """A database with the records of all collections, ordered by the bytes of their ids."""

    def __init__(self, path):
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS collections"
            " (key INTEGER PRIMARY KEY, name TEXT, format TEXT, UNIQUE (name, format))"
        )
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS records (collection INTEGER, id TEXT, item, revision TEXT,"
            " PRIMARY KEY (collection, id))"
        )
        self.keys = {}  # crudd's numbers of the collections that are open, and ours

    def query(self, sql, *arguments):
        return self.database.execute(sql, arguments)

    def begin(self):
        self.query("BEGIN IMMEDIATE")

    # Collections: one for each name and format

    def open_collection(self, collection, name, format, create, **_):
        found = self.query("SELECT key FROM collections WHERE name = ? AND format = ?", name, format).fetchone()
        if found:
            self.keys[collection] = found[0]
        elif create:
            made = self.query("INSERT INTO collections (name, format) VALUES (?, ?)", name, format)
            self.keys[collection] = made.lastrowid
        else:
            raise Failure("not_found", "there is no such collection")
        return {}

    def drop_collection(self, name, **_):
        gone = [key for (key,) in self.query("SELECT key FROM collections WHERE name = ?", name)]
        if not gone:
            raise Failure("not_found", "there is no such collection")
        self.begin()
        for key in gone:
            self.query("DELETE FROM records WHERE collection = ?", key)
            self.query("DELETE FROM collections WHERE key = ?", key)
        self.commit()
        self.keys = {number: key for number, key in self.keys.items() if key not in gone}
        return {}

    def list_collections(self, **_):
        return {"names": [name for (name,) in self.query("SELECT DISTINCT name FROM collections")]}

    def key(self, collection):
        """Our number of a collection by crudd's, which does not ask for one that is not open."""
        if collection not in self.keys:
            raise Failure("internal", f"collection {collection} is not open")
        return self.keys[collection]

    # Reading

    def read(self, collection, ids, items, **_):
        records = []
        for index, id in enumerate(ids):
            found = self.find(collection, id)
            if found:
                item, revision = found
                records.append({"index": index, "revision": revision, **(spelled(item) if items else {})})
        return records

    def scan(self, collection, after, prefix, limit, items, **_):
        rows = self.query(
            "SELECT id, item, revision FROM records WHERE collection = ? AND id > ? AND id >= ? AND id < ?"
            " ORDER BY id LIMIT ?", self.key(collection), after, prefix, self.behind(prefix), limit,
        )
        return (
            {"id": id, "revision": revision, **(spelled(item) if items else {})} for id, item, revision in rows
        )

    def count(self, collection, prefix, filter=None, **_):
        if filter is not None:
            raise Failure("unsupported", "filters come with the capability queries")
        (count,) = self.query(
            "SELECT count(*) FROM records WHERE collection = ? AND id >= ? AND id < ?",
            self.key(collection), prefix, self.behind(prefix),
        ).fetchone()
        return {"count": count}

    @staticmethod
    def behind(prefix):
        """What is greater than every id with a prefix: a blob is greater than any text."""
        return prefix + "\U0010ffff" * 512 if prefix else b""

    def find(self, collection, id):
        return self.query(
            "SELECT item, revision FROM records WHERE collection = ? AND id = ?", self.key(collection), id
        ).fetchone()

    # Writing

    def write(self, mutations, atomic=False, **_):
        self.begin()
        outcomes = []
        for mutation in mutations:
            outcomes.append(self.apply(**mutation))
            if atomic and outcomes[-1]["status"] != "ok":
                self.query("ROLLBACK")
                return {"outcomes": outcomes + [{"status": "ok"}] * (len(mutations) - len(outcomes))}
        self.commit()
        return {"outcomes": outcomes}

    def commit(self):
        try:
            self.query("COMMIT")
        except sqlite3.Error as error:
            # Part of it may be on the disk; whether it counts shows when the file is opened again.
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
                raise Failure("outcome_unknown", str(error)) from error
            raise

    def apply(self, collection, kind, id, precondition="any", expected=None, revision=None, **item):
        found = self.find(collection, id)
        if found and precondition == "absent":
            return {"status": "exists"}
        if not found and (kind == "remove" or precondition in ("present", "revision")):
            return {"status": "not_found"}
        if precondition == "revision" and found[1] != expected:
            return {"status": "mismatch", "revision": found[1]}
        if kind == "put":
            self.query("REPLACE INTO records VALUES (?, ?, ?, ?)", self.key(collection), id, stored(item), revision)
            return {"status": "ok", "replaced": found is not None}
        if kind == "remove":
            self.query("DELETE FROM records WHERE collection = ? AND id = ?", self.key(collection), id)
        return {"status": "ok"}


class Channel:
    """Frames to and from crudd. Whatever else writes to standard output is sent to the log instead."""

    PART = 1 << 18  # characters, of up to four bytes each

    def __init__(self):
        self.longest = 1 << 20  # the longest frame, until crudd says how long it may be
        self.input = sys.stdin.buffer
        self.output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def receive(self):
        """The next request; None at the end."""
        header = self.input.read(4)
        if len(header) < 4:
            return None
        return json.loads(self.input.read(struct.unpack(">I", header)[0]))

    def send(self, **frame):
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) > self.longest:
            raise Failure("corrupt", "there is a record that does not fit a frame")
        self.output.write(struct.pack(">I", len(text)) + text)
        self.output.flush()

    def send_records(self, id, records):
        """A reply with records, in frames of a modest size."""
        part, size = [], 0
        for record in records:
            if size > self.PART:
                self.send(id=id, result={"records": part}, more=True)
                part, size = [], 0
            part.append(record)
            size += 600 + len(record.get("text", "")) + len(record.get("bytes", ""))
        self.send(id=id, result={"records": part})


class Plugin:
    def __init__(self):
        self.channel = Channel()
        self.store = None

    def run(self):
        while (request := self.channel.receive()) is not None:
            if "id" not in request:
                continue
            try:
                self.answer(request["id"], request["method"], request["params"])
            except Failure as failure:
                self.fail(request["id"], failure.error)
            except sqlite3.Error as error:
                self.fail(request["id"], {"status": self.status(error), "message": str(error)})

    def answer(self, id, method, params):
        if method == "hello":
            if params["protocol"] != 1:
                raise Failure("unsupported", "this plugin speaks version 1 of the child protocol")
            self.channel.longest = params["limits"]["frameBytes"]
            self.channel.send(
                id=id,
                result={"protocol": 1, "name": "store", "version": "1.0", "items": "text", "capabilities": CAPABILITIES},
            )
        elif method == "checkOptions":
            checked_path(params["options"])
            self.channel.send(id=id, result={})
        elif method == "open":
            self.store = Store(checked_path(params["options"]))
            self.channel.send(id=id, result={})
        elif method == "read":
            self.channel.send_records(id, self.store.read(**params))
        elif method == "scan":
            self.channel.send_records(id, self.store.scan(**params))
        elif method == "openCollection":
            self.channel.send(id=id, result=self.store.open_collection(**params))
        elif method == "dropCollection":
            self.channel.send(id=id, result=self.store.drop_collection(**params))
        elif method == "listCollections":
            self.channel.send(id=id, result=self.store.list_collections())
        elif method == "count":
            self.channel.send(id=id, result=self.store.count(**params))
        elif method == "write":
            self.channel.send(id=id, result=self.store.write(**params))
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
