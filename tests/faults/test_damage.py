"""A store that becomes unusable while its server is at work: it refuses then, and does not start with it again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tools.faults.ledger import Ledger
from tools.faults.load import LONGEST, send
from tools.faults.proof import Subject
from tools.faults.server import Server

from bespeak.agent.client.agtp_transport import Pool

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PATIENCE = 400
"""Number of requests within which damage is met."""


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    return Subject.new(tmp_path / "deployment", str(tmp_path / "state" / "store.db"))


@pytest.fixture
async def served(subject: Subject) -> AsyncIterator[Server]:
    Path(subject.place).parent.mkdir()
    server = subject.serve()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(random.Random(1))


async def test_requests_are_refused_when_the_store_becomes_read_only(
    subject: Subject, served: Server, ledger: Ledger
) -> None:
    pool = Pool("127.0.0.1", served.port, read_timeout=LONGEST)
    kept = ledger.new()
    assert await send(pool, ledger, kept) in (200, 202)
    files = [subject.place, f"{subject.place}-wal"]
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", *files], check=False).returncode:
        pytest.skip("files that are open can be made read-only by root alone, where the file system allows it")
    try:
        assert await send(pool, ledger, ledger.new()) == 503
        assert (await pool.request("DISCOVER", "/methods")).status == 200
        await pool.close()
        assert "could not be read or written" in served.said()
        served.kill()
        refusal = subject.refusal()
        assert subject.place in refusal
        assert "Traceback" not in refusal
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)
    again = subject.serve()
    try:
        fresh = Pool("127.0.0.1", again.port, read_timeout=LONGEST)
        for order in ledger.orders:
            assert await send(fresh, ledger, order) in (200, 202)
        await fresh.close()
    finally:
        again.kill()
    assert kept.answer is not None
    assert ledger.faults == []


async def test_damaged_store_never_returns_a_wrong_answer(subject: Subject, ledger: Ledger) -> None:
    Path(subject.place).parent.mkdir()
    await _serve_some(subject, ledger)  # and end in order: all of it is in the file then
    kept = ledger.answered
    source = random.Random(1)
    server = subject.serve()
    try:
        with Path(subject.place).open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(source.randbytes(size - 4096))
        pool = Pool("127.0.0.1", server.port, read_timeout=LONGEST)
        statuses: list[int | None] = []
        while statuses.count(503) < 5 and len(statuses) < PATIENCE:
            order = ledger.new() if len(statuses) % 2 else source.choice(kept)
            statuses.append(await send(pool, ledger, order))
        assert 503 in statuses
        assert set(statuses) <= {200, 202, 503}
        assert (await pool.request("DISCOVER", "/methods")).status == 200
        await pool.close()
        assert "is damaged" in server.said()
        assert "Traceback" not in server.said()
    finally:
        server.kill()
    assert ledger.faults == []
    refusal = subject.refusal()
    assert "is damaged" in refusal
    assert "Traceback" not in refusal


async def _serve_some(subject: Subject, ledger: Ledger) -> None:
    server = subject.serve()
    try:
        pool = Pool("127.0.0.1", server.port, read_timeout=LONGEST)
        for _ in range(200):
            assert await send(pool, ledger, ledger.new()) in (200, 202)
        await pool.close()
        assert server.stop() == 0
    finally:
        server.kill()
