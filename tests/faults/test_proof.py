"""The proof detects every row that is removed from or added to a store."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tools.faults.ledger import Ledger
from tools.faults.load import load, send
from tools.faults.proof import Subject, prove, tell

from bespeak.agent.client.agtp_transport import Pool

pytestmark = pytest.mark.process

SOME_KEY = "(SELECT min(key) FROM idempotency WHERE key LIKE 'seat-%')"


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Subject, Ledger]]:
    """Fill a store with answers, cases and records; yield it with the ledger of its clients."""
    ledger = Ledger(random.Random(1))
    with TemporaryDirectory(prefix="bespeak-") as folder:
        subject = Subject.new(Path(folder) / "deployment", str(Path(folder) / "store.db"))

        async def fill() -> None:
            server = subject.serve()
            try:
                async with load(ledger, server.port, 4):
                    await ledger.wait_for(120)
                # The last record is of an acknowledgement: under load it may be of a 409, which promises nothing.
                pool = Pool("127.0.0.1", server.port, size=1)
                assert await send(pool, ledger, ledger.new()) in (200, 202)
                await pool.close()
                assert server.stop() == 0
            finally:
                server.kill()

        asyncio.run(fill())
        yield subject, ledger


def judged(served: tuple[Subject, Ledger], tmp_path: Path, harm: str) -> list[str]:
    """Return the faults found in a copy of the store after `harm`."""
    subject, ledger = served
    copy = Subject(subject.target, str(tmp_path / "copy.db"))
    source, target = sqlite3.connect(subject.place), sqlite3.connect(copy.place)
    source.backup(target)
    before = target.total_changes
    target.executescript(harm)
    assert (target.total_changes > before) == bool(harm)
    for connection in (source, target):
        connection.close()
    again = Ledger(random.Random(2))
    again.orders = [
        type(order)(order.key, order.method, order.path, order.body, order.attempts, order.answer, order.firsts)
        for order in ledger.answered
    ]
    for order, before in zip(again.orders, ledger.answered, strict=True):
        order.acknowledged = list(before.acknowledged)
    asyncio.run(prove(again, copy))
    return again.faults


def test_unchanged_store_has_no_fault(served: tuple[Subject, Ledger], tmp_path: Path) -> None:
    assert judged(served, tmp_path, "") == []


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (f"DELETE FROM idempotency WHERE key = {SOME_KEY}", "was answered"),
        ("DELETE FROM idempotency WHERE key LIKE 'case-%'", "was carried out again"),
        ("DELETE FROM cases WHERE case_id = (SELECT min(case_id) FROM cases)", "cases: 1 lost"),
        ("DELETE FROM audit WHERE position = (SELECT max(position) - 60 FROM audit)", "audit verify"),
        ("DELETE FROM audit WHERE position = (SELECT max(position) FROM audit)", "is recorded 0 times"),
    ],
)
def test_missing_and_duplicate_rows_are_found(
    served: tuple[Subject, Ledger], tmp_path: Path, harm: str, found: str
) -> None:
    faults = judged(served, tmp_path, harm)
    assert [fault for fault in faults if found in fault], faults


def test_faults_are_printed_and_set_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger(random.Random(1))
    assert tell(ledger, "nothing") == 0
    ledger.faults.append("order-1 was lost")
    assert tell(ledger, "something") == 1
    assert "FAULT order-1 was lost" in capsys.readouterr().out
