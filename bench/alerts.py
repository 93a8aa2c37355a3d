"""Alerts that all escalate at one moment: how long after it the last one can be read by its recipient.

To an agent a message is written with its time when the alert is sent. To the subscribers of a channel it is written by
the due loop at that time. Scheduling is not measured, and done in large transactions.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from report import Goal, table

from bespeak.app.server.assembly import Keeper, assemble
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.message import Origin
from bespeak.extensions.messages.methods_broadcast import compose_alert
from bespeak.extensions.messages.recipients import Recipients
from bespeak.extensions.messages.store import PutAlert, PutInChannel, PutMessages
from bespeak.runtime.handling import new_id
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement, Steps, Store

ROOT = Path(__file__).resolve().parents[1]
ALERTS = 100_000
GOAL = Goal("alerts", at_most=1.0, unit=" s")
_TOGETHER = 500
"""Alerts that are scheduled in one transaction."""
_ON_CALL = [f"{number:064x}" for number in range(20)]
_SENDERS = [f"{number:064x}" for number in range(1000, 1100)]
_IDENTITY = ServerIdentity(server_id="bench.example", operator="Bench", contact="ops@bench.example")


class CountArrived(Command, frozen=True):
    """Count the messages that recipients can read now."""

    owners: tuple[str, ...]

    def steps(self) -> Steps:
        """Return a number."""
        rows = yield Statement(
            f"SELECT count(*) FROM records WHERE kind = 'message' AND owner IN ({', '.join('?' * len(self.owners))}) "
            "AND created <= (SELECT {now}) AND expires > (SELECT {now})",
            self.owners,
        )
        return rows[0][0]


def measure(alerts: int = ALERTS) -> bool:
    """Print the delays on SQLite and, if it is there, on PostgreSQL; return True if the goal is met."""
    rows = [("store, escalation to", "alerts", "readable too early", "last after s")]
    goals = []
    good = True
    for name, place in _places():
        for path in ("agents", "a channel"):
            early, delay = asyncio.run(_run(place, alerts, channel=path == "a channel"))
            rows.append((f"{name}, {path}", f"{alerts:,}", f"{early:,}", f"{delay:.3f}"))
            good &= early == 0
            if path == "agents":  # what a channel receives is written one by one, as fast as the store can
                goals.append("  " + GOAL.line(f"{name}, {path}", delay))
                good &= GOAL.met(delay)
    print(table(rows))
    print()
    print("\n".join(goals))
    return good


def _places() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="bespeak-bench-") as folder:
        yield "SQLite", str(Path(folder) / "state.db")
    sys.path.insert(0, str(ROOT))
    from tests.postgres import running_postgres, why_not

    reason = why_not()
    if reason is not None:
        print(f"  PostgreSQL is skipped: {reason}")
        return
    with running_postgres("listen_addresses=127.0.0.1") as server:
        yield "PostgreSQL", server.new_database()


async def _run(place: str, alerts: int, *, channel: bool) -> tuple[int, float]:
    """Schedule alerts for one moment; return how many came before it, and the delay of the last one in seconds."""
    store = open_store(place, role="sole")
    keeper = Keeper(assemble(Service(identity=_IDENTITY, methods=("ALERT",))), store, ServerDocument())
    await keeper.start()
    owners = tuple(_ON_CALL[:1] if channel else _ON_CALL)
    try:
        if channel:
            record = PutRecord("sub-1", "subscription", owners[0], "active", '{"data":{}}')
            await store.do(PutInChannel(record, "on-call"))
        before = await store.read(CountArrived(owners))
        began = time.time()
        await _schedule(store, range(_TOGETHER), began + 86400, channel=channel)
        moment = time.time() + 10 + 4 * alerts / _TOGETHER * (time.time() - began)
        for start in range(0, alerts, _TOGETHER):
            await _schedule(store, range(start, min(start + _TOGETHER, alerts)), moment, channel=channel)
        if time.time() > moment - 1:
            raise RuntimeError("scheduling took longer than expected; try again on a quieter machine")
        await asyncio.sleep(moment - time.time() - 0.5)
        early = await store.read(CountArrived(owners)) - before
        await asyncio.sleep(moment - time.time())
        while (found := await store.read(CountArrived(owners)) - before) < alerts:
            if time.time() > moment + 300:
                raise RuntimeError(f"{alerts - found} alerts have not arrived after five minutes")
            await asyncio.sleep(0.005)
        return early, time.time() - moment
    finally:
        await keeper.stop()


async def _schedule(store: Store, numbers: range, moment: float, *, channel: bool) -> None:
    """Schedule alerts as ALERT does, many in one transaction."""
    records: list[Command] = []
    messages = []
    now = time.time()
    for number in numbers:
        sender = _SENDERS[number % len(_SENDERS)]
        path = ["on-call" if channel else _ON_CALL[number % len(_ON_CALL)]]
        origin = Origin(sender=sender, kind="alert", content={"severity": "high", "message": number})
        found = Recipients((), (), ("on-call",), 1, {}) if channel else Recipients(tuple(path), (), (), 0, {})
        for command in compose_alert(new_id("alert"), origin, found, path, now=now, deadline=moment):
            if isinstance(command, PutMessages):
                messages += command.messages
            elif isinstance(command, PutAlert):
                records.append(_unlimited(command.record))
    await store.do(*records, PutMessages(tuple(messages)))


def _unlimited(record: PutRecord) -> PutRecord:
    """Return the command without the limit of one sender, which would be counted each time."""
    return PutRecord(
        record.record_id, record.kind, record.owner, record.state, record.data, due=record.due, lifetime=record.lifetime
    )


if __name__ == "__main__":
    sys.exit(0 if measure(*(int(number) for number in sys.argv[1:2])) else 1)
