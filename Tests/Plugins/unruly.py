"""A plugin that misbehaves where it is asked to: unruly.py STORE, with STORE the path of Plugins/Examples/store.py.

An id "do:ACT" in a read or a write, such a lower bound of a scan, or {"do": "METHOD:ACT"} in the options makes it do
ACT instead of sending the reply.
"""

import importlib.util
import json
import os
import re
import struct
import sys
import time

specification = importlib.util.spec_from_file_location("store", sys.argv[1])
store = importlib.util.module_from_spec(specification)
specification.loader.exec_module(store)


def frame(head, payload=b""):
    """A frame, its head given as an object or as bytes."""
    if not isinstance(head, bytes):
        head = json.dumps(head).encode()
    return struct.pack(">II", 4 + len(head) + len(payload), len(head)) + head + payload


class Unruly(store.Plugin):
    # A result of a read and of a write.
    GOOD = {"records": [], "outcomes": [{"status": "ok"}]}

    def reply(self, id, method, params, payload):
        if act := self.act(method, params, payload.content):
            getattr(self, act.replace(" ", "_"))(id, method, params, payload)
        else:
            super().reply(id, method, params, payload)

    def act(self, method, params, content):
        when, _, act = params.get("options", {}).pop("do", "").partition(":")
        # The lower bound comes first, and the upper one directly behind it.
        asked = re.search(rb"do:([a-z ]+)", content[: params.get("lower")])
        return act if act and when == method else asked and asked[1].decode()

    # What it may do

    def forgo(self, id, method, params, payload):
        """Opens its storage, and takes back all that it has declared."""
        self.store = store.Store(store.checked_path(params["options"]), params.get("expected"))
        self.channel.send(id=id, result={"capabilities": []})

    def die(self, *_):
        os._exit(3)

    def die_afterwards(self, *request):
        self.channel.send = self.die_instead
        super().reply(*request)

    def die_instead(self, *_, **__):
        os._exit(3)

    def hang(self, *_):
        print("<6>hangs", file=sys.stderr)
        while True:
            time.sleep(3600)

    def spin(self, *_):
        print("<6>spins", file=sys.stderr)
        while True:
            pass

    def eat(self, *_):
        eaten = []
        while True:
            eaten.append(bytearray(1 << 20))

    def close(self, *_):
        os.close(0)
        os.close(self.channel.output.fileno())
        self.hang()

    def raw(self, content):
        self.channel.output.write(content)
        self.channel.output.flush()

    def line(self, *_):
        self.raw(b"Connecting to the database...\n")

    def half(self, *_):
        self.raw(struct.pack(">II", 100, 50) + b'{"id":')
        self.hang()

    def binary(self, *_):
        self.raw(struct.pack(">I", 8) + bytes(range(248, 256)))

    def text(self, *_):
        self.raw(frame(b"reply"))

    def twice(self, id, *_):
        self.raw(frame({"id": id, "result": self.GOOD}) * 2)

    def other_id(self, id, *_):
        self.raw(frame({"id": id + 1, "result": self.GOOD}))

    def both(self, id, *_):
        self.raw(frame({"id": id, "result": self.GOOD, "error": {"status": "internal", "message": ""}}))

    def odd_status(self, id, *_):
        self.raw(frame({"id": id, "error": {"status": "no idea", "message": ""}}))

    def few(self, id, *_):
        self.raw(frame({"id": id, "result": {"outcomes": [], "records": [{"index": 7, "revision": 1}]}}, b"r"))

    def short(self, id, *_):
        """A payload that is shorter than the head says."""
        result = {"outcomes": [{"status": "mismatch", "revision": 9}], "records": [{"index": 0, "item": 9}]}
        self.raw(frame({"id": id, "result": result}, b"12345678"))

    def rest(self, id, *_):
        """A payload that is longer than the head says."""
        self.raw(frame({"id": id, "result": self.GOOD}, b"rest"))

    def long_revision(self, id, *_):
        result = {"outcomes": [{"status": "mismatch", "revision": 65}], "records": [{"index": 0, "revision": 65}]}
        self.raw(frame({"id": id, "result": result}, b"r" * 130))

    # How often a collection without an end was asked for more.
    asked = 0

    def endless(self, id, method, params, payload):
        """Scans find further records for ever, writes remove them; a read tells how often either was asked for."""
        result, output = {}, []
        if method == "scan":
            lower, _, after = (payload.take(params[name]) for name in ("lower", "upper", "afterId"))
            prefix = re.match(rb"do:[a-z ]+", lower)[0]
            first = int(after[len(prefix) :] or -1) + 1
            ids = [prefix + b"%015d" % number for number in range(first, first + params["limit"])]
            result["records"] = [{"id": len(one), "item": 2, "revision": 1} for one in ids]
            output = [one + b"{}r" for one in ids]
        elif method == "write":
            result["outcomes"] = [{"status": "ok"} for _ in params["mutations"]]
        else:
            item = str(self.asked).encode()
            result["records"] = [{"index": 0, "item": len(item), "revision": 1}]
            output = [item + b"r"]
        self.asked += method != "read"
        self.channel.send(output, id=id, result=result)

    def parts(self, id, *_):
        """The reply to a read in frames of one record or none each, all at once."""
        empty = {"id": id, "result": {"records": []}}
        one = {"id": id, "result": {"records": [{"index": 0, "item": 1, "revision": 1}]}, "more": True}
        self.raw(frame(empty | {"more": True}) * 3 + frame(one, b"7r") + frame(empty))

    def progress(self, id, method, params, payload):
        """Takes two seconds, or as many as the id says ("do:progress=7s"), and says so."""
        seconds = re.search(rb"do:progress=([0-9]+)s", payload.content)
        total = 10 * int(seconds[1]) if seconds else 20
        for done in range(total):
            time.sleep(0.1)
            self.raw(frame({"method": "progress", "params": {"done": done, "total": total}}))
        self.raw(frame({"id": id, "result": self.GOOD}))

    def down(self, id, *_):
        """Says that its storage is lost, and what it knows of the call."""
        lost = frame({"method": "state", "params": {"up": False, "reason": "the server is gone"}})
        self.raw(lost + frame({"id": id, "error": {"status": "unavailable", "message": "no server"}}))

    def up(self, id, *_):
        """Says that its storage is back, some time after the reply."""
        self.raw(frame({"id": id, "result": self.GOOD}))
        time.sleep(0.2)
        self.raw(frame({"method": "state", "params": {"up": True, "reason": "the server is back"}}))

    def unasked(self, id, *_):
        """Says something that there is not, some time after the reply."""
        self.raw(frame({"id": id, "result": self.GOOD}))
        time.sleep(0.2)
        self.raw(frame({"id": id, "result": self.GOOD}))

    def tell(self, id, *_):
        """Tells what it was started with."""
        item = {
            "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd") if self.is_open(name)),
            "environment": sorted(os.environ),
            "directory": os.getcwd(),
            "home": os.environ["HOME"],
        }
        item = json.dumps(item).encode()
        self.channel.send([item, b"r"], id=id, result={"records": [{"index": 0, "item": len(item), "revision": 1}]})

    def is_open(self, name):
        # The descriptor that reads the directory is in it, and so is our copy of standard output.
        return os.path.exists(f"/proc/self/fd/{name}") and int(name) != self.channel.output.fileno()

    def chatter(self, id, *_):
        for number in range(5000):
            print(f"<4>line {number}", file=sys.stderr)
        print("x" * 100_000 + "\x1b[31m", file=sys.stderr)
        self.channel.send(id=id, result={"records": []})


if __name__ == "__main__":
    Unruly().run()
