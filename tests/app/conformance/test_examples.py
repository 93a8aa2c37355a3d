"""The example hotel conforms: the checks against the real server, over a real socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bespeak.app.conformance.check import Verdict
from bespeak.app.conformance.report import ITEMS, Report
from bespeak.app.conformance.run import run_conformance
from bespeak.app.server.assembly import assemble
from bespeak.app.server.keeper import Keeper
from bespeak.app.server.target import Target, load_target
from bespeak.faces.agtp.server import AgtpServer
from bespeak.state.identity.key_text import generate_key
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import MEMORY

pytestmark = pytest.mark.anyio

HOTEL = Path(__file__).resolve().parents[3] / "examples" / "hotel"


async def run(target: Target, **options: Any) -> Report:
    assembled = assemble(target.service, base=target.base, stored=True, **options)
    keeper = Keeper(assembled, open_store(MEMORY, role="sole"), target.document, ())
    await keeper.start()
    server = AgtpServer(keeper.dispatcher)
    [(host, port), *_] = await server.start("127.0.0.1", 0)
    try:
        return await run_conformance(f"agtp://{host}:{port}")
    finally:
        await server.close()
        await keeper.stop()


@pytest.fixture(params=["", "app.py"], ids=["toml", "python"])
async def report(request: pytest.FixtureRequest) -> Report:
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
async def test_the_hotel_conforms_in_every_item(report: Report) -> None:
    text = "\n".join(line for _, line in report.lines())
    assert report.conforms, text
    assert {item for item in ITEMS if report.verdict(item) not in (Verdict.PASS, Verdict.WARN)} == set(), text


async def test_unsigned_manifest_is_the_only_warning_for_the_hotel(report: Report) -> None:
    warned = [result.check.id for result in report.results if result.outcome.verdict is Verdict.WARN]
    assert warned == ["13.1-05h"]


@pytest.mark.requirement("API-8.10-3")
async def test_hotel_with_a_key_has_no_warnings() -> None:
    report = await run(load_target(str(HOTEL)), signing_key=generate_key())
    assert report.conforms
    assert not [result.check.id for result in report.results if result.outcome.verdict is Verdict.WARN]
