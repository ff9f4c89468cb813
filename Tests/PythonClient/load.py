"""Increments a counter until it is told to stop, whatever becomes of the daemon, and writes how that went.

load.py DIRECTORY: makes the file "ready" there when all clients are connected, and stops when the file "stop" is there,
or after ten minutes. Then it writes to "result":
{"acknowledged": N, "unknown": N, "refused": N, "value": N, "followed": N}.
"""
import json
import os
import sys
import threading
import time

import crudd


def main():
    counts = {"acknowledged": 0, "unknown": 0, "refused": 0}
    lock = threading.Lock()
    directory = sys.argv[1]
    end = time.monotonic() + 600
    connected = threading.Barrier(5, timeout=60)

    def is_over():
        return os.path.exists(f"{directory}/stop") or time.monotonic() > end

    with crudd.Client() as client:
        client.collection("counters").create("n", {"n": 0})

    def add():
        with crudd.Client(timeout=20) as client:
            counters = client.collection("counters")
            client.ping()
            connected.wait()
            while not is_over():
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
    connected.wait()
    open(f"{directory}/ready", "w").close()
    for thread in threads:
        thread.join()
    with crudd.Client() as client:
        counts["value"] = client.collection("counters").read("n")["n"]
    deadline = time.monotonic() + 60
    while followed[-1:] != [counts["value"]] and time.monotonic() < deadline:
        time.sleep(0.01)
    feed.close()
    follower.join()
    assert followed == sorted(followed), "the feed went back"
    counts["followed"] = followed[-1]
    with open(f"{directory}/result", "w") as result:
        json.dump(counts, result)


main()
