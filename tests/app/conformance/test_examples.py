"""The example hotel conforms: the checks against the real server, over a real socket."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from bespeak.app.conformance import run as run_module
from bespeak.app.conformance.run import ITEMS, ConformanceReport, run_conformance
from bespeak.app.conformance.subject import Verdict, direct_sender
from bespeak.app.server.assembly import Keeper, assemble
from bespeak.app.server.target import Target, load_target
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.extensions.negotiation.store import KEPT
from bespeak.faces.agtp.server import AgtpServer
from bespeak.state.identity.jws import generate_key
from bespeak.state.store.settings import MEMORY, open_store
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

HOTEL = Path(__file__).resolve().parents[3] / "examples" / "hotel"


@asynccontextmanager
async def serve(target: Target, store: Store | None = None, **options: Any) -> AsyncIterator[str]:
    assembled = assemble(target.service, base=target.base, stored=True, **options)
    keeper = Keeper(assembled, store or open_store(MEMORY, role="sole"), target.document, ())
    await keeper.start()
    server = AgtpServer(keeper.dispatcher)
    [(host, port), *_] = await server.start("127.0.0.1", 0)
    try:
        yield f"agtp://{host}:{port}"
    finally:
        await server.close()
        await keeper.stop()


async def run(target: Target, **options: Any) -> ConformanceReport:
    async with serve(target, **options) as uri:
        return await run_conformance(uri)


@pytest.fixture(params=["", "app.py"], ids=["toml", "python"])
async def report(request: pytest.FixtureRequest) -> ConformanceReport:
    return await run(load_target(str(HOTEL / request.param)))


@pytest.mark.requirement(
    "API-13.1-1",
    "API-13.1-2",
    "API-13.1-3",
    "API-13.1-4",
    "API-13.1-5",
    "API-13.1-6",
    "API-13.1-7",
    "API-13.1-9",
    "API-13.1-10",
    "API-13.1-11",
    "API-13.1-12",
    "API-13.1-13",
)
async def test_hotel_conforms_in_every_item_with_the_unsigned_manifest_as_only_warning(
    report: ConformanceReport,
) -> None:
    text = "\n".join(line for _, line in report.lines())
    assert report.conforms, text
    assert {item for item in ITEMS if report.verdict(item) not in (Verdict.PASS, Verdict.WARN)} == set(), text
    warned = [result.check.id for result in report.results if result.outcome.verdict is Verdict.WARN]
    assert warned == ["13.1-05h"]


@pytest.mark.requirement("API-8.10-3")
async def test_hotel_with_a_key_has_no_warnings() -> None:
    report = await run(load_target(str(HOTEL)), signing_key=generate_key())
    assert report.conforms
    assert not [result.check.id for result in report.results if result.outcome.verdict is Verdict.WARN]


def rows(place: Path) -> dict[str, list[Any]]:
    """Return the rows of every table of a store, except the numbers of its changes and the record of what happened."""
    with closing(sqlite3.connect(place)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        compared = [name for name in names if name != "revisions" and not name.startswith("audit")]
        return {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in compared}


def interrupting(at: int) -> Any:
    """Return a sender that interrupts the run while its proposal with a number is on the way."""
    proposals = count(1)

    def make(*given: Any, **named: Any) -> Any:
        send = direct_sender(*given, **named)

        async def interrupt(method: str, *rest: Any) -> Any:
            if method == "PROPOSE" and next(proposals) == at:
                assert running
                running[0].cancel()
            return await send(method, *rest)

        return interrupt

    running: list[asyncio.Task[Any]] = []
    return make, running


def breaking(_: Any) -> Any:
    raise ValueError("this check is broken")


@pytest.mark.parametrize("approval", ["none", "all"])
@pytest.mark.parametrize("end", ["complete", "broken", *range(2, 12)])
async def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approval: str, end: Any) -> None:
    target = load_target(str(HOTEL))
    settings = NegotiationSettings(approval=approval, persistent=True)
    target = replace(target, document=replace(target.document, extension_tables={"negotiation": settings}))
    place, store = tmp_path / "store.db", open_store(str(tmp_path / "store.db"), role="sole")
    make, running = interrupting(end if isinstance(end, int) else 0)
    monkeypatch.setattr(run_module, "direct_sender", make)
    if end == "broken":
        last = replace(run_module.CHECKS[-1], run=breaking)
        monkeypatch.setattr(run_module, "CHECKS", (*run_module.CHECKS[:-1], last))
    async with serve(target, store) as uri:
        before = rows(place)
        running.append(asyncio.create_task(run_conformance(uri)))
        [outcome] = await asyncio.gather(*running, return_exceptions=True)
        expected = {"complete": ConformanceReport, "broken": ValueError}.get(
            str(end), (asyncio.CancelledError, ConformanceReport)
        )
        assert isinstance(outcome, expected)
        await store.do(PurgeExpired(kept=KEPT))
        assert rows(place) == before
