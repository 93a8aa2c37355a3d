"""How fast is SEARCH over a million imported resources, on PostgreSQL and SQLite, from rare words to the most common?

Run it alone: `python bench/searching.py [ROWS] [STORE ...]`. Resources have twelve words of a vocabulary of 50,000,
whose frequencies follow Zipf's law. Without a STORE it starts a PostgreSQL of its own, and fills a SQLite file. A STORE
is an address or a file; it is filled if it is empty, and stays.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from statistics import quantiles

import msgspec
from report import Goal, table

from bespeak.extensions.acquire import store as resources
from bespeak.extensions.acquire.store import ReadResources, SearchResources
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Result, Statement, Steps, Store

QUICK = Goal("p50", at_most=20, unit=" ms")
WORDS, LENGTH, QUERIES, BATCH = 50_000, 12, 60, 5000
COLLECTION, OWNER = "papers", "agent-bench"
# Ranks of words by their frequency: the first is in most resources, the last one in a few.
KINDS = {
    "most common words": (range(5),),
    "common words": (range(5, 30),),
    "middle words": (range(300, 1500),),
    "rare words": (range(20_000, WORDS),),
    "two common words": (range(30), range(5, 30)),
    "common and middle word": (range(30), range(300, 1500)),
}


class Fill(Command, frozen=True):
    """Add resources and their words: what an import does in weeks of small transactions."""

    rows: tuple[tuple[int, str], ...]

    def steps(self) -> Steps:
        for part, places in resources.in_parts(self.rows, f"(?, '{COLLECTION}', '{OWNER}', 1, ?, {{now}}, {{now}})"):
            values = tuple(value for row in part for value in row)
            columns = "(position, collection, owner, version, data, created, updated)"
            yield Statement(f"INSERT INTO resources {columns} VALUES {places}", values)
        for part, places in resources.in_parts(self.rows, "(?, {text_of})"):
            texts = [(row[0], resources._indexed(row[0], COLLECTION, OWNER, row[1])) for row in part]
            yield Statement(
                f"INSERT INTO resources_text ({{text_id}}, words) VALUES {places}",
                tuple(value for pair in texts for value in pair),
            )


class Count(Command, frozen=True):
    def steps(self) -> Result[int]:
        return resources.read_number("SELECT coalesce(max(position), 0) FROM resources")


def write_rows(count: int) -> Iterator[tuple[int, str]]:
    drawn = random.Random(7)
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for position in range(1, count + 1):
        words = drawn.choices(range(WORDS), cum_weights=weights, k=LENGTH)
        yield position, msgspec.json.encode({"text": " ".join(f"w{word}" for word in words)}).decode()


async def fill(store: Store, count: int) -> None:
    batch: list[tuple[int, str]] = []
    for row in write_rows(count):
        batch.append(row)
        if len(batch) == BATCH or row[0] == count:
            await store.do(Fill(tuple(batch)))
            batch = []


async def measure(kind: str, address: str, count: int) -> bool:
    store = open_store(address)
    await store.start()
    good, rows = True, [[kind, "p50 ms", "p95 ms", "matches ranked", "all"]]
    try:
        if not await store.read(Count()):
            began = time.perf_counter()
            await fill(store, count)
            print(f"  {kind}: filled in {time.perf_counter() - began:.0f} s")
        for name, ranks in KINDS.items():
            drawn, times, found = random.Random(3), [], []
            for _ in range(QUERIES):
                words = tuple(f"w{drawn.choice(one)}" for one in ranks)
                began = time.perf_counter()
                matches = await store.read(SearchResources(COLLECTION, (OWNER,), words))
                await store.read(ReadResources(tuple(one.position for one in matches[:20])))
                times.append((time.perf_counter() - began) * 1000)
                found.append(len(matches))
            ordered = quantiles(times, n=20)
            good = QUICK.met(ordered[9]) and good
            complete = sum(one < resources.MOST_CANDIDATES for one in found)
            rows.append(
                [name, f"{ordered[9]:.1f}", f"{ordered[18]:.1f}", f"{sorted(found)[QUERIES // 2]:,}", f"{complete}"]
            )
    finally:
        await store.close()
    print(table(rows))
    return good


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with ExitStack() as stack:
        stores = [("PostgreSQL" if "://" in one else "SQLite", one) for one in sys.argv[2:]]
        if not stores:
            sys.path.insert(0, str(Path(__file__).parents[1]))
            from tests.postgres import running_postgres

            server = stack.enter_context(running_postgres("shared_buffers=256MB", "autovacuum=on"))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stores = [("PostgreSQL", server.new_database()), ("SQLite", f"{folder}/store.sqlite")]
        verdicts = [asyncio.run(measure(kind, address, count)) for kind, address in stores]
        return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
