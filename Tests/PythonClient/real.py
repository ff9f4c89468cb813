"""The client and the real daemon, whose socket is $CRUDD_SOCKET: any collection, with changes, on one backend.

Run by PythonClientTests: python3 -m unittest real, with the client's folder in PYTHONPATH.
"""
import datetime
import os
import threading
import time
import unittest

import crudd
from crudd import where

UTC = datetime.timezone.utc


class RealTests(unittest.TestCase):
    def setUp(self):
        self.client = crudd.Client(name="test")
        self.addCleanup(self.client.close)
        # One for each test.
        self.things = self.client.collection(self.id())

    def test_records(self):
        things = self.things
        revision = things.create("ada", {"name": "Ada", "n": [1, 2.5, None, True, 2**100]})
        record = things.read_record("ada")
        self.assertEqual(record.item, {"name": "Ada", "n": [1, 2.5, None, True, 2**100]})
        self.assertEqual((record.id, record.revision, record.expires_at), ("ada", revision, None))
        with self.assertRaises(crudd.RecordExists):
            things.create("ada", 1)
        second = things.update("ada", 2, if_revision=revision)
        with self.assertRaises(crudd.RevisionMismatch) as caught:
            things.update("ada", 3, if_revision=revision)
        self.assertEqual(caught.exception.revision, second)
        self.assertEqual(things.read("ada"), 2)
        self.assertFalse(things.upsert("ada", 4).created)
        self.assertTrue(things.upsert("bob", 5).created)
        self.assertTrue(things.exists("bob"))
        things.delete("bob")
        self.assertFalse(things.exists("bob"))
        for call in (lambda: things.read("bob"), lambda: things.delete("bob"), lambda: things.update("bob", 1)):
            self.assertRaises(crudd.RecordNotFound, call)
        self.assertEqual(things.get("bob", "none"), "none")
        with self.assertRaises(crudd.RevisionMismatch) as caught:
            things.upsert("bob", 1, if_revision="x")
        self.assertIsNone(caught.exception.revision)

    def test_odd_ids_and_items(self):
        for id in ("../../etc/passwd", "😀", "'; DROP TABLE x; --", "é", "e\u0301", " ", "x" * 512):
            self.things.create(id, {"id": id, "": [[]], "a\u2028": "\0\n\x7f"})
            self.assertEqual(self.things.read(id), {"id": id, "": [[]], "a\u2028": "\0\n\x7f"})
        for id in ("", "x" * 513, "a\n"):
            with self.assertRaises(crudd.InvalidParams) as caught:
                self.things.create(id, 1)
            self.assertEqual(caught.exception.details["member"], "id")

    def test_patches(self):
        things = self.things
        things.create("a", {"n": 1, "tags": ["x"], "old": 1, "b": {"c": 1}})
        record = things.patch(
            "a", {"old": None, "b": {"d": 2}}, increment={"n": 2, "new.m": 0.1}, add={"tags": ["x", "y"]},
            maximum={"high": 7}, minimum={"low": 3}, append={"list": [1, 1]}, remove={"none": [1]})
        self.assertEqual(record.item, {
            "n": 3, "tags": ["x", "y"], "b": {"c": 1, "d": 2}, "new": {"m": 0.1}, "high": 7, "low": 3, "list": [1, 1],
            "none": []})
        self.assertEqual(things.read_record("a").revision, record.revision)
        with self.assertRaises(crudd.Unsupported) as caught:
            things.patch("a", increment={"tags": 1})
        self.assertEqual(caught.exception.details["path"], "tags")
        self.assertEqual(things.patch("new", increment={"n": 1}, upsert=True).item, {"n": 1})
        self.assertIsNone(things.patch("new", None).item)

    def test_expiry(self):
        things = self.things
        things.create("a", 1, ttl=datetime.timedelta(hours=1))
        instant = things.read_record("a").expires_at
        self.assertLess(abs(instant - datetime.datetime.now(UTC) - datetime.timedelta(hours=1)).total_seconds(), 60)
        exact = datetime.datetime(2999, 12, 31, 23, 59, 59, 999000, UTC)
        things.update("a", 1, expires_at=exact)
        self.assertEqual(things.read_record("a").expires_at, exact)
        self.assertEqual(things.modify("a", lambda item: item + 1).expires_at, exact)
        self.assertEqual(things.read_record("a").expires_at, exact)
        things.touch("a", ttl=None)
        self.assertIsNone(things.read_record("a").expires_at)
        things.touch("a", ttl=3600)
        things.patch("a", {"n": 1})
        self.assertIsNotNone(things.read_record("a").expires_at)
        things.touch("a", expires_at=1000)
        self.assertFalse(things.exists("a"))
        with self.assertRaises(ValueError):
            things.create("b", 1, expires_at=datetime.datetime(2030, 1, 1))

    def test_queries(self):
        things = self.things
        with self.client.transaction() as batch:
            for number in range(700):
                batch[things.name].create(f"k{number:03}", {
                    "n": number, "name": f"na_me%{number}", "t": ["even" if number % 2 == 0 else "odd"],
                    "in": {"ner": -number}})
        self.assertEqual(len(batch.results), 700)
        self.assertEqual(things.count(), 700)
        self.assertEqual([record.id for record in things.query(page_size=99)], [f"k{n:03}" for n in range(700)])
        self.assertEqual(len(list(things.query(limit=250, page_size=100))), 250)
        self.assertEqual(list(things.query(limit=0)), [])
        expected = [
            (where("n") < 3, 3), (where("n") <= 3, 4), (where("n") > 697, 2), (where("n") >= 697, 3),
            (where("n") == 5, 1), (where("n") != 5, 699), (where("n").between(1, 9), 9),
            (where("n").is_in([1, 2, 1000]), 2), (where("none").is_null(), 700),
            (where("name").starts_with("na_me%69"), 11), (where("name").contains("_me%69"), 11),
            (where("name").like("na%"), 700), (where("name").like("na!%"), 0),
            (where("t").contains_all(["odd"]), 350), ((where("n") < 5) & (where("in.ner") < -1), 3),
            ((where("n") < 5) | (where("n") > 690), 14), (~(where("n") < 5), 695),
        ]
        for condition, count in expected:
            self.assertEqual(things.count(condition), count, condition)
            self.assertEqual(len(list(things.query(condition, page_size=50))), count, condition)
        page = things.page(sort="-n", fields=["in.ner"], limit=2)
        self.assertEqual([record.item for record in page.records], [{"in": {"ner": -699}}, {"in": {"ner": -698}}])
        following = things.page(sort="-n", cursor=page.cursor, limit=1)
        self.assertEqual(following.records[0].id, "k697")
        self.assertEqual(things.count(prefix="k01"), 10)
        self.assertEqual(len(things.read_many([f"k{n:03}" for n in range(2500)])), 700)
        with self.assertRaises(crudd.InvalidQuery):
            things.count({"op": "?", "args": []})
        self.assertEqual(things.delete_matching(where("n") < 100), 100)
        self.assertEqual(things.delete_matching(prefix="k1"), 100)
        with self.assertRaises(crudd.InvalidParams):
            things.delete_matching()
        self.assertEqual(things.delete_matching(all=True), 500)

    def test_transactions(self):
        things, name = self.things, self.things.name
        revision = things.create("a", {"n": 10})
        with self.client.transaction() as batch:
            batch[name].check("a", revision)
            batch[name].check("b", None)
            batch[name].patch("a", increment={"n": -5})
            batch[name].create("b", {"n": 5})
            batch[name].upsert("c", 1)
        self.assertEqual([type(result) for result in batch.results],
                         [type(None), type(None), crudd.Record, str, crudd.Upserted])
        self.assertEqual((things.read("a"), things.read("b")), ({"n": 5}, {"n": 5}))
        with self.assertRaises(crudd.RevisionMismatch) as caught:
            with self.client.transaction() as batch:
                batch[name].delete("b")
                batch[name].check("a", revision)
        self.assertEqual(caught.exception.details["index"], 1)
        self.assertTrue(things.exists("b"))
        with self.assertRaises(KeyError):
            with self.client.transaction() as batch:
                batch[name].delete("b")
                raise KeyError("the block fails")
        self.assertTrue(things.exists("b"))
        with self.client.batch() as batch:
            batch[name].delete("b")
            batch[name].update("none", 1)
            batch[name].update("c", 2)
        self.assertIsInstance(batch.results[1], crudd.RecordNotFound)
        self.assertFalse(things.exists("b"))
        self.assertEqual(things.read("c"), 2)
        self.assertEqual(self.client.transaction().commit(), [])

    def test_feeds(self):
        things = self.things
        for id in "abc":
            things.create(id, {"n": 1})
        with things.changes(follow=False) as feed:
            changes = list(feed)
        self.assertEqual([(change.id, change.kind) for change in changes], [(id, "saved") for id in "abc"])
        with things.changes(changes[-1].cursor, filter=where("n") == 1) as feed:
            self.assertIsNone(feed.poll(0.05))
            things.delete("a")
            things.update("b", {"n": 2})
            self.assertEqual([(change.id, change.kind) for change in (next(feed), next(feed))],
                             [("a", "removed"), ("b", "unmatched")])
            writer = threading.Timer(0.1, lambda: things.update("c", {"n": 1, "m": 1}))
            writer.start()
            change = next(feed)
            self.assertEqual((change.id, change.item, change.kind), ("c", {"n": 1, "m": 1}, "saved"))
            writer.join()
        with things.changes("now", items=False) as feed:
            self.assertIsNone(feed.poll(0))
            things.update("c", 1)
            self.assertEqual((change := feed.poll(20)).id, "c")
            self.assertIsNone(change.item)
        with things.changes(follow=False, fields=["n"], prefix="b") as feed:
            self.assertEqual([change.item for change in feed], [{"n": 2}])
        with things.changes("no cursor") as feed, self.assertRaises(crudd.InvalidQuery):
            next(feed)

    def test_threads_share_a_client(self):
        self.things.create("n", {"n": 0})
        failures = []

        def add():
            try:
                for _ in range(25):
                    self.things.patch("n", increment={"n": 1})
                    self.things.modify("n", lambda item: {**item, "m": item.get("m", 0) + 1})
            except crudd.CruddError as error:
                failures.append(error)

        threads = [threading.Thread(target=add) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.things.read("n"), {"n": 200, "m": 200})

    def test_calls(self):
        self.client.ping()
        self.things.create("a", 1)
        self.assertIn(self.things.name, [collection["name"] for collection in self.client.collections()])
        self.assertEqual(self.client.call("session.whoami")["uid"], os.getuid())
        sessions = self.client.call("session.list")["sessions"]
        self.assertIn("test", [session["client"] for session in sessions])
        with self.assertRaises(crudd.MethodNotFound):
            self.client.call("no.such.method")
        with self.assertRaises(crudd.InvalidParams) as caught:
            self.client.call("record.read", {"collection": "x"})
        self.assertEqual(caught.exception.details["member"], "id")
        with self.assertRaises(crudd.LimitExceeded) as caught:
            self.things.create("deep", _nested(200))
        self.assertEqual(caught.exception.details["limit"], "json_depth")
        with self.assertRaises(crudd.LimitExceeded) as caught:
            self.things.create("long", "x" * (17 << 20))
        self.assertEqual(caught.exception.details["limit"], "frame_bytes")
        begin = time.monotonic()
        with self.client.deadline(0), self.assertRaises(crudd.TimedOut):
            self.things.read("a")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(self.things.read("a"), 1)


def _nested(depth):
    item = []
    for _ in range(depth):
        item = [item]
    return item


if __name__ == "__main__":
    unittest.main()
