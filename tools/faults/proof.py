"""The verdict after a run: every acknowledged change is stored exactly once, and the store and its audit trail are
intact.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.faults.deployment import write_deployment
from tools.faults.ledger import Ledger, Order
from tools.faults.load import LONGEST, ask_until_answered
from tools.faults.server import NotStartedError, Server, bespeak

from bespeak.agent.client.agtp_transport import Pool

_AT_ONCE = 16
_PATIENCE = 120.0
_OUTCOMES = ("replays", "broken off", "409", "taken over", "503")


@dataclass(frozen=True)
class Subject:
    """The deployment under test and the location of its store."""

    target: Path
    place: str
    workers: int = 1
    audited: bool = True
    """True if every response must be recorded."""

    @classmethod
    def new(cls, folder: Path, place: str, workers: int = 1, *, audited: bool = True) -> Subject:
        """Make a new deployment in a new folder."""
        return cls(write_deployment(folder, audited=audited), place, workers, audited)

    def serve(self) -> Server:
        """Start the server."""
        return Server(self.target, "--store", self.place, "--workers", str(self.workers))

    def refusal(self) -> str:
        """Return the error output of a server that does not start; empty if it starts, and then stop it."""
        try:
            server = self.serve()
        except NotStartedError as error:
            return str(error)
        server.kill()
        return ""


async def prove(ledger: Ledger, subject: Subject) -> None:
    """Request every answer once more, then inspect the store; add what is wrong to the faults of the ledger."""
    acknowledged = len(ledger.answered)
    ledger.counts["acknowledged under load"] = acknowledged
    server = await asyncio.to_thread(subject.serve)
    try:
        await ask_for_all(ledger, server.port)
        code = await asyncio.to_thread(server.stop)
    finally:
        server.kill()
    if code:
        ledger.faults.append(f"the server exited with {code}: {server.said()[-600:]}")
    await asyncio.to_thread(_inspect, ledger, subject)


async def ask_for_all(ledger: Ledger, port: int) -> None:
    """Send every order until it is acknowledged."""
    pool = Pool("127.0.0.1", port, size=_AT_ONCE, read_timeout=LONGEST)
    orders = iter(list(ledger.orders))
    deadline = time.monotonic() + _PATIENCE

    async def work() -> None:
        for order in orders:
            await ask_until_answered(ledger, pool, order, deadline)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    await pool.close()


def export(ledger: Ledger, subject: Subject) -> dict[str, list[dict[str, Any]]] | None:
    """Check the store and return the rows of its tables; None if that fails, which is a fault."""
    place = ("--store", subject.place)
    checked = bespeak("store", "check", str(subject.target), *place)
    if checked.returncode:
        ledger.faults.append(f"store check: {checked.stdout}{checked.stderr}")
    with tempfile.TemporaryDirectory(prefix="bespeak-") as folder:
        file = Path(folder) / "rows.jsonl"
        exported = bespeak("store", "export", str(subject.target), *place, "-o", str(file))
        if exported.returncode:
            ledger.faults.append(f"store export: {exported.stdout}{exported.stderr}")
            return None
        return _rows(file)


def _inspect(ledger: Ledger, subject: Subject) -> None:
    tables = export(ledger, subject)
    if tables is None:
        return
    _inspect_answers(ledger, tables.get("idempotency", []))
    _inspect_cases(ledger, tables.get("cases", []))
    if subject.audited:
        _inspect_records(ledger, tables.get("audit", []))
        verified = bespeak("audit", "verify", str(subject.target), "--store", subject.place)
        if verified.returncode:
            ledger.faults.append(f"audit verify: {verified.stdout}{verified.stderr}")


def _rows(file: Path) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {}
    with file.open("rb") as lines:
        for line in lines:
            row = json.loads(line)
            if "table" in row:
                tables.setdefault(row["table"], []).append(row["row"])
    return tables


def _inspect_answers(ledger: Ledger, rows: list[dict[str, Any]]) -> None:
    kept = Counter(row["key"] for row in rows if row["answer"] is not None)
    compare(ledger, "kept answers", kept, (order.key for order in ledger.orders))


def _inspect_cases(ledger: Ledger, cases: list[dict[str, Any]]) -> None:
    escalations = [order for order in ledger.orders if order.method == "ESCALATE" and order.answer is not None]
    promised = [_escalation_id(order) for order in escalations]
    compare(ledger, "cases", Counter(row["case_id"] for row in cases), promised)
    ledger.counts["cases"] = len(promised)


def _escalation_id(order: Order) -> str:
    assert order.answer is not None
    return str(json.loads(order.answer[1])["result"]["escalation_id"])


def _inspect_records(ledger: Ledger, rows: list[dict[str, Any]]) -> None:
    """Check that each received response is recorded, with one execution per key."""
    payloads = [_payload(row["jws"]) for row in rows]
    good = [payload for payload in payloads if payload["status"] in (200, 202) and "request_id" in payload]
    told = Counter(payload["request_id"] for payload in good)
    for order in ledger.orders:
        ledger.faults += [
            f"{request_id} was answered, but is recorded {told[request_id]} times"
            for request_id in order.acknowledged
            if told[request_id] != 1
        ]
    runs = Counter(payload["request_id"].rpartition(".")[0] for payload in good if not payload.get("replayed"))
    compare(ledger, "records of runs", runs, (order.key for order in ledger.orders))
    ledger.counts["records"] = len(rows)


def _payload(jws: str) -> dict[str, Any]:
    part = jws.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def compare(ledger: Ledger, what: str, found: Counter[str], wanted: Iterator[str] | list[str]) -> None:
    """Check that each expected item occurs exactly once, and no others."""
    expected = set(wanted)
    for name, wrong in (
        ("lost", [key for key in expected if key not in found]),
        ("doubled", [key for key in expected if found[key] > 1]),
        ("unexpected", [key for key in found if key not in expected]),
    ):
        if wrong:
            ledger.faults.append(f"{what}: {len(wrong)} {name}, such as {wrong[0]}")


def tell(ledger: Ledger, title: str, names: tuple[str, ...] = ("cases", "records")) -> int:
    """Print a summary with the named counts and the faults; return the exit code."""
    counts = ledger.counts
    acknowledged = counts["acknowledged under load"]
    print(title)
    print(f"  {len(ledger.orders)} keys, {ledger.sent} requests, {acknowledged} acknowledged under load")
    others = ", ".join(
        f"{counts[name]} {name}" for name in ("replays", "broken off", "409", "taken over", "503") if counts[name]
    )
    print(f"  {others or 'nothing was refused'}; the slowest answer took {ledger.slowest:.2f} s")
    found = ", ".join(f"{counts[name]} {name}" for name in names if name in counts)
    if found:
        print(f"  {found}")
    for fault in ledger.faults[:20]:
        print(f"  FAULT {fault}")
    if ledger.faults:
        print(f"  {len(ledger.faults)} faults")
        return 1
    print("  acknowledged = present: none lost, none duplicated, the store is intact")
    return 0
