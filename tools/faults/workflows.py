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
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.postgres import PostgresServer, why_not
from tools.faults.deployment import AGENT, EFFECTS
from tools.faults.kill import kill_again_and_again
from tools.faults.ledger import Ledger, Order
from tools.faults.load import LONGEST, load
from tools.faults.outage import harm_again_and_again, harms_to
from tools.faults.proof import Subject, ask_for_all, compare, export, tell
from tools.faults.server import Server, bespeak

from bespeak.agent.client.agtp_transport import Pool

_BEGIN = ("CHAIN", "BATCH", "RUN")
HARMS = ("process", "machine", "database")
_CHAIN = ("LOG", "BOOK", "LOG", "LOG")
_BATCH = ("LOG", "LOG", "BOOK", "LOG", "BOOK", "LOG")
_RUN = (("Authority-Scope", "activation:run"),)
_DESK = (("Agent-ID", "d" * 64), ("Authority-Scope", "escalation:confirm"))
_PATIENCE = 60.0
# A function with everything that a run can await. Those whose mark ends with `f` fail in the end, and are undone.
_TRIPS = f'''
import os
import random

from bespeak import App, Refusal, Run

app = App("Fault Air", server_id="faults.example", operator="Fault Air", contact="desk@faults.example")
LOG = os.path.join(os.path.dirname(__file__), "{EFFECTS}")


async def write(mark: str, idempotency_key: str) -> str:
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, (idempotency_key + "\\t" + mark + "\\n").encode())
    os.close(log)
    return mark


@app.workflow("trip", errors={{"no_seat": "No seat is free."}})
async def trip(run: Run, mark: str) -> dict[str, str]:
    """Do everything once."""
    def log(number: str, **more):
        return run.call("LOG", "/", event_type="step", data=f"{{mark}} {{number}}", **more)

    await log("1", undo=("LOG", "/", {{"event_type": "step", "data": f"{{mark}} undone"}}))
    await run.step(write, f"{{mark}} 2")
    await run.sleep(0.6 if run.random() < 0.5 else 0.01)
    await run.together(log("5"), run.call("BOOK", "/taxi", mark=f"{{mark}} 6"))
    allowed = await run.ask("operator", "May it go on?")
    paid = await run.wait_for("payment")
    await log("9")
    if mark.endswith("f"):
        raise Refusal("no_seat", "No seat is free.")
    return {{"mark": mark, "paid": paid, "allowed": str(allowed)}}
'''
_CALLS = {"LOG": (1, 5, 9), "outside": (2, 6)}  # numbers of what the function does; 3 is random, 4 sleeps, 7 asks


class WorkflowLedger(Ledger):
    """A ledger whose orders are workflows: some steps have an effect in the store, some outside it."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._told: set[str] = set()  # runs that were sent a signal and an answer

    def new(self) -> Order:
        """Make an order with a new key: a workflow, or what a run of the function waits for."""
        return next(self.rest(), None) or self._begin()

    def rest(self) -> Iterator[Order]:
        """Make the orders that acknowledged runs wait for."""
        for order in self.answered:
            for method in ("NOTIFY", "CONFIRM"):
                key = f"{method.lower()}-{order.key}"
                if order.method == "RUN" and key not in self._told:
                    self._told.add(key)
                    yield self._add(_tell(method, key, run_of(order)))

    def _add(self, order: Order) -> Order:
        self.orders.append(order)
        self.open.append(order)
        return order

    def _begin(self) -> Order:
        method, kinds = self._source.choice((("CHAIN", _CHAIN), ("BATCH", _BATCH), ("RUN", ())))
        key = f"{method.lower()}-{len(self.orders)}-{self._source.getrandbits(64):016x}"
        if method == "RUN":
            key += self._source.choice("fs")
            body = json.dumps({"procedure_id": "trip", "input": {"mark": key}})
            return self._add(Order(key, "RUN", "/", body.encode(), headers=_RUN))
        steps = [_step(kind, f"{key} {number}") for number, kind in enumerate(kinds, 1)]
        body = json.dumps({"steps" if method == "CHAIN" else "calls": steps})
        return self._add(Order(key, method, "/", body.encode(), headers=_RUN))


def run_of(order: Order) -> str:
    """Return the id of the run that an acknowledged order has begun."""
    assert order.answer is not None
    return str(json.loads(order.answer[1])["result"]["run_id"])


def _tell(method: str, key: str, run_id: str) -> Order:
    if method == "NOTIFY":
        body = {"workflow_id": run_id, "name": "payment", "value": key}
        return Order(key, method, "/workflows", json.dumps(body).encode(), headers=_RUN)
    # A run is acknowledged when it waits for the answer, so that the question is there.
    body = {"target_id": f"esc-{run_id}-7", "status": "accepted"}
    return Order(key, method, "/", json.dumps(body).encode(), headers=_DESK)


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
        assert isinstance(ledger, WorkflowLedger)
        if list(ledger.rest()):
            await ask_for_all(ledger, server.port)
        await _wait_for_runs(ledger, server.port)
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code:
        ledger.faults.append(f"the server exited with {code}: {server.said()[-600:]}")
    await asyncio.to_thread(_inspect, ledger, subject)


async def _wait_for_runs(ledger: Ledger, port: int) -> None:
    pool, deadline = Pool("127.0.0.1", port, size=4, read_timeout=LONGEST), time.monotonic() + _PATIENCE
    headers = (("Agent-ID", AGENT), ("Content-Type", "application/json"), *_RUN)
    for order in ledger.answered:
        body, state = json.dumps({"target": run_of(order)}).encode() if order.method == "RUN" else b"", ""
        while body and state not in ("completed", "failed") and time.monotonic() < deadline:
            reply = await pool.request("CHECK", "/", headers, body)
            state = json.loads(reply.body).get("result", {}).get("status", f"{reply.status}")
            await asyncio.sleep(0.01)
    await pool.close()


def _inspect_runs(ledger: Ledger, tables: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Check the journals of runs; return the marks of their effects in the store, and those outside with their keys."""
    marks, outside = list[str](), dict[str, str]()
    states = {row["record_id"]: row["state"] for row in tables.get("records", []) if row["kind"] == "workflow"}
    journals: dict[str, dict[int, str]] = {}
    for row in tables.get("steps", []):
        journals.setdefault(row["workflow_id"], {})[row["number"]] = row["state"]
    for order in ledger.answered:
        if order.method != "RUN":
            continue
        run_id, fails = run_of(order), order.key.endswith("f")
        wanted = {0: "done", **dict.fromkeys((1, 2, 4, 5, 6, 7, 8, 9), "done"), -1: "received"}
        wanted |= {0: "failed", 1: "undone"} if fails else {}
        if states.get(run_id) != ("failed" if fails else "completed") or journals.get(run_id) != wanted:
            ledger.faults.append(f"{run_id} is {states.get(run_id)} with the journal {journals.get(run_id)}")
        marks += [f"{order.key} {number}" for number in (*_CALLS["LOG"], *(("undone",) if fails else ()))]
        outside |= {f"{order.key} {number}": f"{run_id}-{number}" for number in _CALLS["outside"]}
        ledger.counts["runs of a function"] += 1
    return marks, outside


def _inspect(ledger: Ledger, subject: Subject) -> None:
    tables = export(ledger, subject)
    if tables is None:
        return
    marks, bookings = _inspect_runs(ledger, tables)
    for order in ledger.answered:
        if order.method not in ("CHAIN", "BATCH"):
            continue
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
    compare(ledger, "workflows", begun, [order.key for order in ledger.orders if order.method in _BEGIN])
    left = [row["record_id"] for row in workflows if row["state"] not in ("completed", "failed")]
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


def _add_function(folder: Path) -> None:
    (folder / "trips.py").write_text(_TRIPS, "utf-8")
    file = folder / "bespeak.toml"
    text = file.read_text("utf-8").replace("[server]\n", '[server]\napp = "trips:app"\n')
    file.write_text(text.replace('enable = ["CHAIN"', 'enable = ["RUN", "CHECK", "CHAIN"'), "utf-8")


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
            _add_function(subject.target)

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
    return tell(ledger, title, ("steps", "runs of a function", "effects repeated after a crash"))


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--harm", choices=HARMS, default="process")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, choices=[1, 2], default=1)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run (not its timing)")
    parser.add_argument("--no-audit", dest="audited", action="store_false", help="record no audit trail")
    options = parser.parse_args()
    if options.store == "sqlite" and options.harm != "process":
        parser.error("only a PostgreSQL can be shared by machines or crash by itself")
    reason = why_not() if options.store == "postgres" else None
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    seed = random.randrange(2**32) if options.seed is None else options.seed
    chosen = {name: getattr(options, name) for name in ("rounds", "clients", "workers", "harm", "audited")}
    return run(options.store, seed=seed, **chosen)


if __name__ == "__main__":
    sys.exit(main())
