"""Harm servers while they run workflows, and verify that no step is lost and none has its effect twice.

python -m tools.faults.workflows --store sqlite --rounds 10            # kill -9
python -m tools.faults.workflows --store postgres --harm machine       # kill -9 of one of two servers
python -m tools.faults.workflows --store postgres --harm database      # PostgreSQL crashes
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.postgres import PostgresServer, why_not
from tools.faults.deployment import EFFECTS
from tools.faults.kill import kill_again_and_again
from tools.faults.ledger import Ledger, Order
from tools.faults.load import load
from tools.faults.outage import harm_again_and_again, harms_to
from tools.faults.proof import Subject, ask_for_all, compare, export, tell
from tools.faults.server import Server, bespeak

HARMS = ("process", "machine", "database")
_CHAIN = ("LOG", "BOOK", "LOG", "LOG")
_BATCH = ("LOG", "LOG", "BOOK", "LOG", "BOOK", "LOG")


class WorkflowLedger(Ledger):
    """A ledger whose orders are workflows: some steps have an effect in the store, some outside it."""

    def new(self) -> Order:
        """Make an order with a new key."""
        method, kinds = self._source.choice((("CHAIN", _CHAIN), ("BATCH", _BATCH)))
        key = f"{method.lower()}-{len(self.orders)}-{self._source.getrandbits(64):016x}"
        steps = [_step(kind, f"{key} {number}") for number, kind in enumerate(kinds, 1)]
        body = json.dumps({"steps" if method == "CHAIN" else "calls": steps})
        order = Order(key, method, "/", body.encode())
        self.orders.append(order)
        self.open.append(order)
        return order


def _step(kind: str, mark: str) -> dict[str, Any]:
    if kind == "LOG":
        return {"method": "LOG", "parameters": {"event_type": "step", "data": mark}}
    return {"method": "BOOK", "path": "/taxi", "parameters": {"mark": mark}}


async def prove(ledger: Ledger, subject: Subject) -> None:
    """Request every receipt, then count the effects; add what is wrong to the faults of the ledger."""
    ledger.counts["acknowledged under load"] = len(ledger.answered)
    server = await asyncio.to_thread(subject.serve)
    try:
        await ask_for_all(ledger, server.port)
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code:
        ledger.faults.append(f"the server exited with {code}: {server.said()[-600:]}")
    await asyncio.to_thread(_inspect, ledger, subject)


def _inspect(ledger: Ledger, subject: Subject) -> None:
    tables = export(ledger, subject)
    if tables is None:
        return
    marks, bookings = list[str](), dict[str, str]()
    for order in ledger.answered:
        assert order.answer is not None
        given = json.loads(order.body)
        receipt = json.loads(order.answer[1])["result"]
        workflow_id = receipt.get("chain_id") or receipt.get("batch_id")
        steps = given.get("steps") or given.get("calls")
        states = [step["status"] for step in receipt.get("steps") or receipt.get("results")]
        if receipt["status"] != "completed" or set(states) != {"done"}:
            ledger.faults.append(f"{order.key} ended as {receipt['status']} with steps {states}")
        for number, step in enumerate(steps, 1):
            if step["method"] == "LOG":
                marks.append(step["parameters"]["data"])
            else:
                bookings[step["parameters"]["mark"]] = f"{workflow_id}-{number}"
    records = tables.get("records", [])
    logged = Counter(json.loads(row["data"])["data"] for row in records if row["kind"] == "log")
    compare(ledger, "effects in the store", logged, marks)
    workflows = [row for row in records if row["kind"] == "workflow"]
    begun = Counter(row["key"].rpartition(" ")[2] for row in workflows)
    compare(ledger, "workflows", begun, [order.key for order in ledger.orders])
    left = [row["record_id"] for row in workflows if row["state"] != "completed"]
    ledger.faults += [f"{left[0]} and {len(left) - 1} other workflows have not ended"] if left else []
    _inspect_bookings(ledger, subject, bookings)
    if subject.audited:
        verified = bespeak("audit", "verify", str(subject.target), "--store", subject.place)
        ledger.faults += [f"audit verify: {verified.stdout}{verified.stderr}"] if verified.returncode else []
    ledger.counts["steps"] = len(tables.get("steps", []))


def _inspect_bookings(ledger: Ledger, subject: Subject, wanted: dict[str, str]) -> None:
    """Check effects outside the store: each at least once, and always with the key of its step."""
    lines = (subject.target / EFFECTS).read_text("utf-8").splitlines() if wanted else []
    found = Counter(line.partition("\t")[2] for line in lines)
    compare(ledger, "keys of effects", Counter({line.split("\t", 1)[0] for line in lines}), list(wanted.values()))
    lost = [mark for mark in wanted if not found[mark]]
    ledger.faults += [f"effects outside the store: {len(lost)} lost, such as {lost[0]}"] if lost else []
    ledger.counts["effects repeated after a crash"] = sum(count - 1 for count in found.values())


async def kill_one_of_two(ledger: Ledger, subject: Subject, source: random.Random, rounds: int, clients: int) -> None:
    """Run two servers on one database, and kill one while both work: the other ends what it had begun."""
    survivor = await asyncio.to_thread(subject.serve)
    try:
        for _ in range(rounds):
            other: Server = await asyncio.to_thread(subject.serve)
            try:
                async with AsyncExitStack() as stack:
                    for server in (survivor, other):
                        await stack.enter_async_context(load(ledger, server.port, clients))
                    await ledger.wait_for(source.randint(20, 200))
                    other.kill()
                    ledger.counts["kills"] += 1
                    await ledger.wait_for(source.randint(20, 100))
            finally:
                other.kill()
            await ask_for_all(ledger, survivor.port)
            if ledger.faults or "Traceback" in survivor.said() + other.said():
                ledger.faults.append(f"a server wrote: {survivor.said()[-2000:]}{other.said()[-2000:]}")
                return
    finally:
        survivor.kill()


def run(
    store: str, *, rounds: int, clients: int, seed: int, workers: int = 1, harm: str = "process", audited: bool = True
) -> int:
    """Perform one run and print the result; return the exit code."""
    source = random.Random(seed)
    ledger = WorkflowLedger(source)
    database = None if store == "sqlite" else PostgresServer()
    try:
        with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name:
            place = str(Path(name) / "store.db") if database is None else database.new_database()
            subject = Subject.new(Path(name) / "deployment", place, workers, audited=audited)

            async def harm_and_prove() -> None:
                if harm == "process":
                    await kill_again_and_again(ledger, subject, source, rounds, clients)
                elif harm == "machine":
                    await kill_one_of_two(ledger, subject, source, rounds, clients)
                else:
                    assert database is not None
                    crash = harms_to(database)[:1]
                    await harm_again_and_again(ledger, subject, crash, source, rounds=rounds, clients=clients)
                await prove(ledger, subject)

            asyncio.run(harm_and_prove())
    finally:
        if database is not None:
            database.remove()
    counts = ledger.counts
    done = ", ".join(f"{counts[name]} {name}" for name in ("kills", "workers killed", "workers paused", "crashes"))
    title = f"workflows on {store}, harm to a {harm}, {workers} worker(s), {clients} clients, seed {seed}: {done}"
    return tell(ledger, title, ("steps", "effects repeated after a crash"))


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--harm", choices=HARMS, default="process")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=[1, 2], default=1)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    options = parser.parse_args()
    if options.store == "sqlite" and options.harm != "process":
        parser.error("only a PostgreSQL can be shared by machines or crash by itself")
    reason = why_not() if options.store == "postgres" else None
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if options.seed is None else options.seed
    chosen = {name: getattr(options, name) for name in ("rounds", "clients", "workers", "harm")}
    return run(options.store, seed=seed, **chosen)


if __name__ == "__main__":
    sys.exit(main())
