"""Harm servers while they work on queues, and verify that no item is lost and none has its effect twice.

python -m tools.faults.queues --store sqlite --rounds 10            # kill -9
python -m tools.faults.queues --store postgres --workers 2          # kill -9 and SIGSTOP of single workers
python -m tools.faults.queues --store postgres --harm machine       # kill -9 of one of two servers
python -m tools.faults.queues --store postgres --harm database      # PostgreSQL crashes
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
from pathlib import Path

from tests.postgres import PostgresServer, why_not
from tools.faults.deployment import AGENT, EFFECTS, LEASE
from tools.faults.kill import kill_again_and_again
from tools.faults.ledger import Ledger, Order
from tools.faults.load import LONGEST
from tools.faults.outage import harm_again_and_again, harms_to
from tools.faults.proof import Subject, ask_for_all, compare, export, tell
from tools.faults.server import bespeak
from tools.faults.workflows import HARMS, kill_one_of_two

from bespeak.agent.client.agtp_transport import Pool
from bespeak.state.identity.jws import generate_key, private_text

_PATIENCE = 60.0
_CONFIGURATION = f"""
[server]
server_id = "faults.example"
operator = "Fault Air"
contact = "desk@faults.example"
app = "desk:app"
{{server}}
[idempotency]
lease = {LEASE}

[methods]
enable = ["CHECK"]
"""
_AUDIT = """
[audit]
enabled = true
records = "all"
checkpoint_every = 50
"""
# An item writes a line outside the store, and submits another item in its own transaction. Some attempts fail.
_DESK = f'''
import asyncio
import os
import random

from bespeak import App, Context

app = App("Fault Air", server_id="faults.example", operator="Fault Air", contact="desk@faults.example")
LOG = os.path.join(os.path.dirname(__file__), "{EFFECTS}")


@app.queue("tickets", concurrency=8, retries=100, lease={LEASE})
async def write_ticket(mark: str, context: Context) -> dict[str, str]:
    """Write a ticket."""
    line = context.request.headers["idempotency-key"] + "\\t" + mark + "\\n"
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)
    await asyncio.sleep(random.random() * 0.01)
    context.submit("letters", {{"mark": mark}})
    return {{"ticket": mark}}


@app.queue("letters", concurrency=8, retries=100, lease={LEASE})
async def send_letter(mark: str) -> dict[str, str]:
    """Send the letter of a ticket."""
    return {{"letter": mark}}
'''


class QueueLedger(Ledger):
    """A ledger whose orders are items of a queue."""

    def new(self) -> Order:
        """Make an order with a new key."""
        key = f"item-{len(self.orders)}-{self._source.getrandbits(64):016x}"
        content = {"target": "tickets", "payload": {"mark": key}, "priority": self._source.choice(("low", "high"))}
        order = Order(key, "SUBMIT", "/", json.dumps(content).encode())
        self.orders.append(order)
        self.open.append(order)
        return order


def write_deployment(folder: Path, *, audited: bool) -> Path:
    """Write the deployment into a new folder."""
    folder.mkdir(parents=True)
    configuration = _CONFIGURATION.format(server='signing_key = "server.pem"' if audited else "")
    if audited:
        (folder / "server.pem").write_text(private_text(generate_key()), "utf-8")
        configuration += _AUDIT
    (folder / "bespeak.toml").write_text(configuration, "utf-8")
    (folder / "desk.py").write_text(_DESK, "utf-8")
    return folder


async def prove(ledger: Ledger, subject: Subject) -> None:
    """Submit what was not acknowledged, wait until nothing waits, then count the effects."""
    ledger.counts["acknowledged under load"] = len(ledger.answered)
    server = await asyncio.to_thread(subject.serve)
    try:
        await ask_for_all(ledger, server.port)
        await _wait_until_done(ledger, server.port)
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code or "Traceback" in server.said():
        ledger.faults.append(f"the server exited with {code}: {server.said()[-2000:]}")
    await asyncio.to_thread(_inspect, ledger, subject)


async def _wait_until_done(ledger: Ledger, port: int) -> None:
    """Wait until every item is done, and then until the items that they submitted are."""
    pool = Pool("127.0.0.1", port, size=4, read_timeout=LONGEST)
    deadline = time.monotonic() + _PATIENCE
    states: dict[str, str] = {}
    for order in ledger.answered:
        item = _tracking_id(order)
        headers = (("Agent-ID", AGENT), ("Content-Type", "application/json"))
        while states.get(item) not in ("done", "dead") and time.monotonic() < deadline:
            reply = await pool.request("CHECK", "/", headers, json.dumps({"target": item}).encode())
            states[item] = json.loads(reply.body).get("result", {}).get("status", f"{reply.status}")
    ledger.counts["items"] = len(states)
    wrong = Counter(state for state in states.values() if state != "done")
    ledger.faults += [f"{count} items are {state}" for state, count in wrong.items()]
    await asyncio.sleep(2 * LEASE)  # for the letters of the last ones
    await pool.close()


def _tracking_id(order: Order) -> str:
    assert order.answer is not None
    return str(json.loads(order.answer[1])["result"]["tracking_id"])


def _inspect(ledger: Ledger, subject: Subject) -> None:
    tables = export(ledger, subject)
    if tables is None:
        return
    keys = {_tracking_id(order): order.key for order in ledger.answered}
    items = [row for row in tables.get("records", []) if row["kind"] == "submission"]
    tickets = Counter(row["record_id"] for row in items if row["channel"] == "tickets")
    letters = [row for row in items if row["channel"] == "letters"]
    compare(ledger, "items", tickets, list(keys))
    sent = Counter(json.loads(row["data"])["payload"]["mark"] for row in letters)
    compare(ledger, "effects in the store", sent, list(keys.values()))
    left = [row["record_id"] for row in items if row["state"] != "done"]
    ledger.faults += [f"{left[0]} and {len(left) - 1} other items are not done"] if left else []
    lines = (subject.target / EFFECTS).read_text("utf-8").splitlines()
    written = Counter(line.partition("\t")[2] for line in lines)
    compare(ledger, "effects outside the store", Counter(dict.fromkeys(written, 1)), list(keys.values()))
    pairs = {(item, mark) for item, _, mark in (line.partition("\t") for line in lines)}
    ledger.faults += [] if pairs <= set(keys.items()) else ["an effect had another key than its item"]
    ledger.counts["effects repeated after a crash"] = sum(written.values()) - len(written)
    if subject.audited:
        verified = bespeak("audit", "verify", str(subject.target), "--store", subject.place)
        ledger.faults += [f"audit verify: {verified.stdout}{verified.stderr}"] if verified.returncode else []


def run(
    store: str, *, rounds: int, clients: int, seed: int, workers: int = 1, harm: str = "process", audited: bool = True
) -> int:
    """Perform one run and print the result; return the exit code."""
    source = random.Random(seed)
    ledger = QueueLedger(source)
    database = None if store == "sqlite" else PostgresServer()
    try:
        with tempfile.TemporaryDirectory(prefix="bespeak-faults-") as name:
            place = str(Path(name) / "store.db") if database is None else database.new_database()
            target = write_deployment(Path(name) / "deployment", audited=audited)
            subject = Subject(target, place, workers, audited)

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
    title = f"queues on {store}, harm to a {harm}, {workers} worker(s), {clients} clients, seed {seed}: {done}"
    return tell(ledger, title, ("items", "effects repeated after a crash"))


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
