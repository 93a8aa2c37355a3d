"""How fast are a million rows of CSV imported into a store, and found by their words?

Run it alone: `python bench/imports.py [ROWS] [STORE]`. It starts `bespeak serve` on a new SQLite file, or on a
PostgreSQL store that it is given, imports the rows through a file of `/files`, and reads the peak memory of the server.
The goals for a million rows on SQLite: imported in 30 s with at most 200 MB, and a SEARCH whose median is below 20 ms,
also for common words.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx

import bespeak

AGENT: Final = "a" * 64
CONFIGURATION: Final = """
[server]
server_id = "bench.example"
operator = "Bench"
contact = "ops@bench.example"
[policies]
scope_required_for_invocation = false
[methods]
enable = ["IMPORT", "SEARCH", "CHECK", "CANCEL"]
[files]
max_bytes = 268435456
"""
CITIES: Final = ("Oslo", "Bergen", "Paris", "Kyoto", "Lima", "Turin", "Porto", "Graz")


def write_table(path: Path, rows: int) -> None:
    """Write rows of 60 bytes: every word of `note` is common, each name is rare."""
    chance = random.Random(7)
    with path.open("w") as file:
        file.write("id,name,city,amount,note\n")
        for number in range(rows):
            city = chance.choice(CITIES)
            file.write(f"{number},person{number % 50_000},{city},{chance.randrange(10_000)}.50,customer order paid\n")


def peak_of(process: int) -> float:
    """Return the peak memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(rows: int, folder: Path, store: str) -> None:
    (folder / "bespeak.toml").write_text(CONFIGURATION)
    table = folder / "rows.csv"
    write_table(table, rows)
    command = [sys.executable, "-m", "bespeak", "serve", str(folder), "--store", store]
    command += ["--agtp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        uri, url = (server.stdout.readline().split()[1].rstrip(",") for _ in range(2))
        began = time.perf_counter()
        with table.open("rb") as file:
            headers = {"Agent-ID": AGENT}
            kept = httpx.post(f"{url}/files", files={"file": file}, headers=headers, timeout=120)
        kept.raise_for_status()
        with bespeak.connect_sync(uri, agent_id=AGENT, timeout=120) as service:
            given = {"source": {"file": kept.json()["file"]}, "target": "people", "format": "csv", "key": "id"}
            told = service.call("IMPORT", "/", **given)
            while told["status"] in ("queued", "running"):
                time.sleep(0.1)
                told = service.call("CHECK", "/", target=told.get("import_id") or told["target"])
            spent = time.perf_counter() - began
            assert told["status"] == "done", told
            size, load = table.stat().st_size / 1e6, os.getloadavg()[0]
            print(f"{told['details']['result']['added']:,} rows, {size:.0f} MB, imported in {spent:.1f} s", end="; ")
            print(f"server at most {peak_of(server.pid):.0f} MB; load {load:.1f}")
            while True:
                found = service.call("SEARCH", "/", query="customer", scope="people")
                if not found["total_is_estimate"] or time.perf_counter() - began > 600:
                    break
                waiting = service.call("SEARCH", "/", query=f"person{(rows - 1) % 50_000}", scope="people")
                if not waiting["total_is_estimate"]:
                    break
                time.sleep(1)
            print(f"all found by their words after {time.perf_counter() - began:.0f} s", end="; ")
            print(f"server at most {peak_of(server.pid):.0f} MB")
            for what in ("person777", "oslo", "customer", "customer order oslo"):
                times = []
                for _ in range(50):
                    began = time.perf_counter()
                    service.call("SEARCH", "/", query=what, scope="people")
                    times.append((time.perf_counter() - began) * 1e3)
                print(f"SEARCH {what!r}: p50 {statistics.median(times):.1f} ms, most {max(times):.1f} ms")
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
        measure(count, Path(made), sys.argv[2] if len(sys.argv) > 2 else str(Path(made) / "bench.db"))
