"""The client and a scripted peer: half frames, ends at the worst moment, ids and lengths that are wrong.

Run by PythonClientTests: python3 -m unittest scripted, with the client's folder in PYTHONPATH.
"""
import json
import os
import socket
import struct
import tempfile
import threading
import time
import unittest

import crudd

LIMITS = {"frame_bytes": 1 << 20, "batch": 2}
SECONDS = 20


def frame(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack(">I", len(body)) + body


class Peer:
    """One accepted connection."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(SECONDS)

    def read(self, count):
        text = b""
        while len(text) < count:
            part = self.socket.recv(count - len(text))
            if not part:
                raise EOFError
            text += part
        return text

    def request(self):
        return json.loads(self.read(struct.unpack(">I", self.read(4))[0]))

    def send(self, data):
        self.socket.sendall(data)

    def reply(self, request, result):
        self.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    def reject(self, request, code, name, retryable=False, details=None):
        data = {"name": name, "retryable": retryable, **({"details": details} if details else {})}
        error = {"code": code, "message": "m", "data": data}
        self.send(frame({"jsonrpc": "2.0", "id": request and request["id"], "error": error}))

    def hello(self):
        request = self.request()
        assert request["method"] == "session.hello" and request["params"]["protocol"] == 1, request
        self.reply(request, {"protocol": 1, "limits": LIMITS})
        return self

    def close(self):
        self.socket.close()

    def is_closed(self):
        """Waits until the client has closed the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


class ScriptedTests(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "s")
        # Closed after the scripts have ended.
        self.sockets = []
        self.addCleanup(lambda: [opened.close() for opened in self.sockets])
        self.listen()
        self.failures = []

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(SECONDS)
        self.sockets.append(self.listener)

    def stop_listening(self):
        self.listener.close()
        os.unlink(self.path)

    def accept(self):
        peer = Peer(self.listener.accept()[0])
        self.sockets.append(peer)
        return peer

    def script(self, body):
        """Runs a script beside the test, which waits for its end."""

        def run():
            try:
                body()
            except BaseException as error:
                self.failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(self.finish, thread)
        return thread

    def finish(self, thread):
        thread.join(SECONDS)
        self.assertFalse(thread.is_alive(), "the script has not ended")
        self.assertEqual(self.failures, [])

    def client(self, timeout=SECONDS):
        client = crudd.Client(self.path, timeout=timeout, name="test")
        self.addCleanup(client.close)
        return client

    # Tracing

    def test_a_request_has_the_trace_of_its_caller(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        seen = []

        def script():
            peer = self.accept().hello()
            for end in range(3):
                request = peer.request()
                seen.append(request.get("traceparent"))
                if end == 0:
                    # It is sent again, with the same trace.
                    peer.close()
                    peer = self.accept().hello()
                    seen.append(peer.request().get("traceparent"))
                    peer.reply({"id": 2}, {})
                else:
                    peer.reply(request, {})

        self.script(script)
        traces = iter([trace, None, ""])
        client = crudd.Client(self.path, timeout=SECONDS, traceparent=lambda: next(traces))
        self.addCleanup(client.close)
        for _ in range(3):
            client.ping()
        self.assertEqual(seen, [trace, trace, None, None])

    # Outcomes

    def test_a_write_that_was_sent_is_never_sent_again(self):
        seen = []

        def script():
            for end in range(4):
                peer = self.accept().hello()
                seen.append(peer.request()["method"])
                if end == 1:
                    peer.send(frame({"jsonrpc": "2.0", "id": 1, "result": {"revision": "1"}})[:-3])
                if end == 2:
                    peer.send(b"\0\0")
                if end == 3:
                    peer.send(frame(b'{"jsonrpc":"2.0","id":'))
                peer.close()

        self.script(script)
        things = self.client().collection("things")
        for write in (
                lambda: things.create("a", 1), lambda: things.patch("a", increment={"n": 1}),
                lambda: things.delete("a"), lambda: things.delete_matching(all=True)):
            with self.assertRaises(crudd.OutcomeUnknown) as caught:
                write()
            self.assertFalse(caught.exception.retryable)
            self.assertIsNotNone(caught.exception.__cause__)
        self.assertEqual(
            seen, ["record.create", "record.patch", "record.delete", "record.deleteMatching"])

    def test_a_read_is_sent_again(self):
        def script():
            for _ in range(3):
                peer = self.accept().hello()
                request = peer.request()
                assert request["method"] == "record.read", request
                peer.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": {}})[:9])
                peer.close()
            peer = self.accept().hello()
            peer.reply(peer.request(), {"id": "a", "item": [1], "revision": "7"})

        self.script(script)
        record = self.client().collection("things").read_record("a")
        self.assertEqual((record.item, record.revision, record.expires_at), ([1], "7", None))

    def test_a_write_that_was_not_sent_is_sent_on_the_next_connection(self):
        closed = threading.Event()

        def script():
            peer = self.accept().hello()
            peer.reply(peer.request(), {"exists": True})
            peer.close()
            self.stop_listening()
            closed.set()
            time.sleep(0.2)
            self.listen()
            peer = self.accept().hello()
            request = peer.request()
            assert request["method"] == "record.create", request
            peer.reply(request, {"revision": "1"})

        self.script(script)
        things = self.client().collection("things")
        self.assertTrue(things.exists("a"))
        closed.wait(SECONDS)
        self.assertEqual(things.create("a", 1), "1")

    def test_a_long_write_that_was_cut_short_is_sent_again(self):
        """The daemon ends in the middle of the frame: it has executed nothing of it."""

        def script():
            peer = self.accept().hello()
            peer.read(1000)
            peer.close()
            peer = self.accept().hello()
            request = peer.request()
            peer.reply(request, {"revision": str(len(request["params"]["item"]))})

        self.script(script)
        item = "x" * (LIMITS["frame_bytes"] - 1000)
        self.assertEqual(self.client().collection("things").create("a", item), str(len(item)))

    def test_time_outs(self):
        release = threading.Event()

        def script():
            peers = []
            for _ in range(3):
                peers.append(self.accept().hello())
                peers[-1].request()
            assert all(peer.is_closed() for peer in peers)
            peer = self.accept().hello()
            peer.reply(peer.request(), {"exists": False})
            release.wait(SECONDS)

        self.script(script)
        # The hello, too, has so long, and takes its time on a busy machine.
        client = self.client(timeout=2)
        things = client.collection("things")
        with self.assertRaises(crudd.TimedOut) as caught:
            things.read("a")
        self.assertTrue(caught.exception.retryable)
        self.assertEqual((caught.exception.code, caught.exception.name), (-32015, "timed_out"))
        with self.assertRaises(crudd.OutcomeUnknown):
            things.update("a", 1)
        with client.deadline(1.5), self.assertRaises(crudd.OutcomeUnknown):
            things.touch("a", ttl=1)
        # A late reply is not taken for that of another call: each has a connection of its own.
        client.timeout = SECONDS
        self.assertFalse(things.exists("a"))
        release.set()

    def test_a_peer_that_does_not_read(self):
        def script():
            peer = self.accept().hello()
            release.wait(SECONDS)
            peer.close()

        release = threading.Event()
        self.script(script)
        client = self.client(timeout=2)
        with self.assertRaises(crudd.TimedOut):
            client.collection("things").create("a", "x" * (LIMITS["frame_bytes"] - 1000))
        release.set()

    # Violations

    def test_what_the_protocol_does_not_allow(self):
        def reply(request, **members):
            return frame({"jsonrpc": "2.0", "id": request["id"], **members})

        replies = [
            lambda request: frame({"jsonrpc": "2.0", "id": request["id"] + 1, "result": {}}),
            lambda request: frame({"jsonrpc": "2.0", "id": str(request["id"]), "result": {}}),
            lambda request: frame({"jsonrpc": "2.0", "id": True, "result": {}}),
            lambda request: frame({"jsonrpc": "2.0", "id": None, "result": {}}),
            lambda request: frame({"jsonrpc": "2.0", "result": {}}),
            lambda request: reply(request),
            lambda request: reply(request, result={}, error={"code": 1}),
            lambda request: reply(request, error={"code": "x"}),
            lambda request: reply(request, error=None),
            lambda request: frame([]), lambda request: frame(b""), lambda request: frame(b"{"),
            lambda request: frame(b"\xff"), lambda request: frame(b"[" * 100_000),
            lambda request: struct.pack(">I", (1 << 30) + 1), lambda request: b"\xff\xff\xff\xff",
        ]

        def script():
            for make in replies:
                for _ in range(2):
                    peer = self.accept().hello()
                    peer.send(make(peer.request()))
                    assert peer.is_closed()

        self.script(script)
        things = self.client().collection("things")
        for number in range(len(replies)):
            with self.subTest(number), self.assertRaises(crudd.ProtocolViolation):
                things.read("a")
            with self.subTest(number), self.assertRaises(crudd.OutcomeUnknown) as caught:
                things.create("a", 1)
            self.assertIsInstance(caught.exception.__cause__, crudd.ProtocolViolation)

    def test_results_that_lack_a_member(self):
        def script():
            peer = self.accept().hello()
            for _ in range(13):
                peer.reply(peer.request(), {})

        self.script(script)
        client = self.client()
        things = client.collection("things")
        for read in (
                lambda: things.read("a"), lambda: things.exists("a"), lambda: things.count(),
                lambda: things.read_many(["a"]), lambda: things.page(), lambda: client.collections()):
            self.assertRaises(crudd.ProtocolViolation, read)

        def batch():
            with client.batch() as operations:
                operations["things"].delete("a")

        for write in (
                lambda: things.create("a", 1), lambda: things.update("a", 1), lambda: things.upsert("a", 1),
                lambda: things.patch("a", {}), lambda: things.touch("a", ttl=1),
                lambda: things.delete_matching(all=True), batch):
            self.assertRaises(crudd.OutcomeUnknown, write)

    def test_a_header_alone_takes_no_memory(self):
        """A gigabyte that is announced and does not come."""

        def script():
            peer = self.accept().hello()
            peer.request()
            peer.send(struct.pack(">I", 1 << 30) + b"x" * 1000)
            assert peer.is_closed()

        self.script(script)
        with open("/proc/self/status") as status:
            before = int(next(line for line in status if line.startswith("VmHWM")).split()[1])
        self.assertRaises(crudd.TimedOut, self.client(timeout=2).collection("things").read, "a")
        with open("/proc/self/status") as status:
            after = int(next(line for line in status if line.startswith("VmHWM")).split()[1])
        self.assertLess(after - before, 64 << 10)

    def test_replies_in_pieces_and_together(self):
        def script():
            peer = self.accept().hello()
            for _ in range(2):
                for byte in frame({"jsonrpc": "2.0", "id": peer.request()["id"], "result": {"exists": True}}):
                    peer.send(bytes([byte]))

        self.script(script)
        things = self.client().collection("things")
        self.assertTrue(things.exists("a") and things.exists("b"))

    # Errors

    def test_errors_by_their_code(self):
        known = [error for error in vars(crudd).values()
                 if isinstance(error, type) and issubclass(error, crudd.CruddError) and "code" in vars(error)]
        known.remove(crudd.CruddError)
        # The client's own, which no daemon sends.
        known.remove(crudd.TimedOut)
        self.assertEqual(len(known), 19)

        def script():
            peer = self.accept().hello()
            for error in known:
                peer.reject(peer.request(), error.code, error.name, error.retryable, {"revision": "9"})
            peer.reject(peer.request(), -32999, "of_the_future")

        self.script(script)
        things = self.client().collection("things")
        for error in known:
            with self.assertRaises(error) as caught:
                things.create("a", 1)
            self.assertIs(type(caught.exception), error)
            self.assertEqual(caught.exception.details, {"revision": "9"})
            self.assertEqual(str(caught.exception), f"{error.name}: m")
            self.assertEqual(caught.exception.retryable, error.retryable)
        with self.assertRaises(crudd.CruddError) as caught:
            things.create("a", 1)
        self.assertEqual((caught.exception.code, caught.exception.name), (-32999, "of_the_future"))

    def test_a_frame_that_the_daemon_rejects(self):
        """Its configuration has changed since the hello; nothing of the frame was executed."""

        def script():
            for is_read in (False, True):
                peer = self.accept().hello()
                peer.read(1000)
                if is_read:
                    peer.read(500_000 - 1000)
                peer.reject(None, -32007, "limit_exceeded", details={"limit": "frame_bytes", "maximum": 1000})
                peer.socket.shutdown(socket.SHUT_RDWR)
                peer.close()
            peer = self.accept().hello()
            peer.reply(peer.request(), {"exists": True})

        self.script(script)
        things = self.client().collection("things")
        for _ in range(2):
            with self.assertRaises(crudd.LimitExceeded) as caught:
                things.create("a", "x" * 600_000)
            self.assertEqual(caught.exception.details["limit"], "frame_bytes")
        self.assertTrue(things.exists("a"))

    def test_what_is_too_long_is_not_sent(self):
        def script():
            peer = self.accept().hello()
            peer.reply(peer.request(), {"exists": True})

        self.script(script)
        things = self.client().collection("things")
        with self.assertRaises(crudd.LimitExceeded) as caught:
            things.create("a", "x" * LIMITS["frame_bytes"])
        self.assertEqual(caught.exception.details, {"limit": "frame_bytes", "maximum": LIMITS["frame_bytes"]})
        for item in (float("nan"), object(), {"a": {1, 2}}, "\ud800"):
            with self.assertRaises((TypeError, ValueError)):
                things.create("a", item)
        self.assertTrue(things.exists("a"))

    # Connecting

    def test_no_daemon(self):
        self.stop_listening()
        begin = time.monotonic()
        with self.assertRaisesRegex(crudd.Unavailable, "is crudd running"):
            self.client().ping()
        self.assertLess(time.monotonic() - begin, SECONDS / 2)

    def test_too_many_sessions_and_other_versions(self):
        def script():
            peer = self.accept()
            peer.reject(None, -32007, "limit_exceeded", details={"limit": "sessions", "maximum": 1})
            peer.close()
            peer = self.accept()
            peer.reply(peer.request(), {"protocol": 2, "limits": {}})
            peer = self.accept()
            peer.reject(peer.request(), -32008, "unavailable", True)
            peer = self.accept().hello()
            peer.reply(peer.request(), {})

        self.script(script)
        client = self.client()
        self.assertRaises(crudd.LimitExceeded, client.ping)
        self.assertRaises(crudd.Unsupported, client.ping)
        self.assertRaises(crudd.Unavailable, client.ping)
        client.ping()

    def test_closing_ends_what_another_thread_waits_for(self):
        arrived = threading.Event()

        def script():
            peer = self.accept().hello()
            peer.request()
            arrived.set()
            assert peer.is_closed()

        self.script(script)
        client = self.client()
        outcomes = []

        def read():
            try:
                client.collection("things").read("a")
            except crudd.CruddError as error:
                outcomes.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        arrived.wait(SECONDS)
        client.close()
        thread.join(SECONDS)
        self.assertEqual([type(error) for error in outcomes], [crudd.Closed])
        self.assertRaises(crudd.Closed, client.ping)

    # Feeds

    def test_a_feed_survives_and_misses_nothing(self):
        seen = []

        def page(cursor, *changes, more=False):
            return {"changes": list(changes), "cursor": cursor, "more": more}

        def script():
            def next_request(peer):
                request = peer.request()
                assert request["method"] == "collection.changes"
                seen.append((request["params"]["after"], request["params"].get("wait")))
                return request

            peer = self.accept().hello()
            saved = {"id": "a", "item": [1], "revision": "7", "expiresAt": 1500}
            peer.reply(next_request(peer), page("c1", saved, {"id": "b", "deleted": True}))
            next_request(peer)
            peer.close()
            self.stop_listening()
            self.listen()
            peer = self.accept().hello()
            peer.reject(next_request(peer), -32008, "unavailable", True)
            peer.reject(
                next_request(peer), -32007, "limit_exceeded", details={"limit": "followers_per_session", "maximum": 1})
            peer.reply(next_request(peer), page("c2"))
            peer.reply(next_request(peer), page("c3", {"id": "c", "revision": "9", "matches": False}))
            peer.reject(next_request(peer), -32014, "cursor_expired")

        self.script(script)
        with self.client().collection("things").changes() as feed:
            # The first connection is that of the feed.
            first = next(feed)
            self.assertEqual((first.id, first.kind, first.item, first.revision), ("a", "saved", [1], "7"))
            self.assertEqual(first.expires_at.timestamp(), 1.5)
            # Not before the last change of its page has been processed does the cursor move.
            self.assertEqual(first.cursor, "start")
            second = next(feed)
            self.assertEqual((second.id, second.kind, second.cursor), ("b", "removed", "c1"))
            third = next(feed)
            self.assertEqual((third.id, third.kind, third.cursor), ("c", "unmatched", "c3"))
            self.assertRaises(crudd.CursorExpired, next, feed)
        self.assertEqual(seen, [(cursor, 15) for cursor in ("start", "c1", "c1", "c1", "c1", "c2", "c3")])

    def test_a_feed_from_now_on(self):
        def script():
            peer = self.accept().hello()
            request = peer.request()
            assert "wait" not in request["params"] and request["params"]["prefix"] == "p", request
            peer.reply(request, {"changes": [], "cursor": "c1", "more": False})
            request = peer.request()
            assert request["params"]["wait"] > 0, request
            arrived.set()
            assert peer.is_closed()

        arrived = threading.Event()
        self.script(script)
        feed = self.client().collection("things").changes("now", prefix="p")
        thread = threading.Thread(target=lambda: self.assertEqual(list(feed), []))
        thread.start()
        arrived.wait(SECONDS)
        feed.close()
        thread.join(SECONDS)
        self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()
