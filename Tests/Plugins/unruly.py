"""A plugin that misbehaves where it is asked to: unruly.py STORE, with STORE the path of Plugins/Examples/store.py.

An id "do:ACT" in a read or a write, such a prefix of a scan, or {"do": "METHOD:ACT"} in the options, makes it do ACT
instead of answering.
"""

import importlib.util
import json
import os
import struct
import sys
import time

specification = importlib.util.spec_from_file_location("store", sys.argv[1])
store = importlib.util.module_from_spec(specification)
specification.loader.exec_module(store)


class Unruly(store.Plugin):
    # A result of a read and of a write.
    GOOD = {"records": [], "outcomes": [{"status": "ok"}]}

    def answer(self, id, method, params):
        for act in self.acts(method, params):
            getattr(self, act.replace(" ", "_"))(id, method, params)
            return
        super().answer(id, method, params)

    def acts(self, method, params):
        options = params.get("options", {})
        when, _, act = options.pop("do", "").partition(":")
        ids = params.get("ids", []) + [mutation["id"] for mutation in params.get("mutations", [])]
        ids.append(params.get("prefix", ""))
        return [act] * (when == method) + [one[3:].rstrip("0123456789") for one in ids if one.startswith("do:")]

    # What it may do

    def forgo(self, id, method, params):
        """Opens its storage, and takes back all that it has declared."""
        self.store = store.Store(store.checked_path(params["options"]))
        self.channel.send(id=id, result={"capabilities": []})

    def die(self, *_):
        os._exit(3)

    def die_afterwards(self, id, method, params):
        self.channel.send = self.die_instead
        super().answer(id, method, params)

    def die_instead(self, **_):
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
        self.raw(struct.pack(">I", 100) + b'{"id":')
        self.hang()

    def binary(self, *_):
        self.raw(struct.pack(">I", 8) + bytes(range(248, 256)))

    def twice(self, id, *_):
        text = json.dumps({"id": id, "result": self.GOOD}).encode()
        self.raw((struct.pack(">I", len(text)) + text) * 2)

    def other_id(self, id, *_):
        self.channel.send(id=id + 1, result=self.GOOD)

    def both(self, id, *_):
        self.channel.send(id=id, result=self.GOOD, error={"status": "internal", "message": ""})

    def odd_status(self, id, *_):
        self.channel.send(id=id, error={"status": "no idea", "message": ""})

    def few(self, id, *_):
        self.channel.send(id=id, result={"outcomes": [], "records": [{"index": 7, "revision": "r"}]})

    def long_revision(self, id, *_):
        self.channel.send(
            id=id,
            result={
                "outcomes": [{"status": "mismatch", "revision": "r" * 65}],
                "records": [{"index": 0, "revision": "r" * 65, "text": "1"}],
            },
        )

    # How often a collection without an end was asked for more.
    asked = 0

    def endless(self, id, method, params):
        """Scans find further records for ever, writes remove them; a read tells how often either was asked for."""
        result = {}
        if method == "scan":
            first = int(params["after"][len(params["prefix"]) :] or -1) + 1
            ids = [f"{params['prefix']}{number:015}" for number in range(first, first + params["limit"])]
            result["records"] = [{"id": one, "revision": "r", "text": "{}"} for one in ids]
        elif method == "write":
            result["outcomes"] = [{"status": "ok"} for _ in params["mutations"]]
        else:
            result["records"] = [{"index": 0, "revision": "r", "text": str(self.asked)}]
        self.asked += method != "read"
        self.channel.send(id=id, result=result)

    def parts(self, id, *_):
        """Answers a read in frames of one record each, all at once."""
        frames = [{"result": {"records": []}, "more": True}] * 3
        frames += [{"result": {"records": [{"index": 0, "revision": "r", "text": "7"}]}, "more": True}]
        texts = [json.dumps({"id": id} | frame).encode() for frame in frames + [{"result": {"records": []}}]]
        self.raw(b"".join(struct.pack(">I", len(text)) + text for text in texts))

    def tell(self, id, *_):
        """Tells what it was started with."""
        item = {
            "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd") if self.is_open(name)),
            "environment": sorted(os.environ),
            "directory": os.getcwd(),
            "home": os.environ["HOME"],
        }
        self.channel.send(id=id, result={"records": [{"index": 0, "revision": "r", "item": item}]})

    def is_open(self, name):
        # The descriptor that reads the directory is in it, and so is our copy of standard output.
        return os.path.exists(f"/proc/self/fd/{name}") and int(name) != self.channel.output.fileno()

    def chatter(self, id, method, params):
        for number in range(5000):
            print(f"<4>line {number}", file=sys.stderr)
        print("x" * 100_000 + "\x1b[31m", file=sys.stderr)
        self.channel.send(id=id, result={"records": []})


if __name__ == "__main__":
    Unruly().run()
