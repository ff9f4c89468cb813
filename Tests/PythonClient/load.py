"""Increments a counter until its time is over, whatever becomes of the daemon, and writes how that went.

load.py SECONDS FILE: writes {"acknowledged": N, "unknown": N, "refused": N, "value": N, "followed": N}.
"""
import json
import sys
import threading
import time

import crudd


def main():
    counts = {"acknowledged": 0, "unknown": 0, "refused": 0}
    lock = threading.Lock()
    end = time.monotonic() + float(sys.argv[1])
    with crudd.Client() as client:
        client.collection("counters").create("n", {"n": 0})

    def add():
        with crudd.Client(timeout=20) as client:
            counters = client.collection("counters")
            client.ping()
            while time.monotonic() < end:
                try:
                    counters.patch("n", increment={"n": 1})
                    outcome = "acknowledged"
                except crudd.OutcomeUnknown:
                    outcome = "unknown"
                except crudd.Unavailable:
                    outcome = "refused"
                with lock:
                    counts[outcome] += 1

    followed = []
    with crudd.Client() as client:
        client.ping()
        feed = client.collection("counters").changes()

    def follow():
        for change in feed:
            followed.append(change.item["n"])

    threads = [threading.Thread(target=add) for _ in range(4)]
    follower = threading.Thread(target=follow)
    for thread in [*threads, follower]:
        thread.start()
    for thread in threads:
        thread.join()
    with crudd.Client() as client:
        counts["value"] = client.collection("counters").read("n")["n"]
    deadline = time.monotonic() + 20
    while followed[-1:] != [counts["value"]] and time.monotonic() < deadline:
        time.sleep(0.01)
    feed.close()
    follower.join()
    assert followed == sorted(followed), "the feed went back"
    counts["followed"] = followed[-1]
    with open(sys.argv[2], "w") as result:
        json.dump(counts, result)


main()
