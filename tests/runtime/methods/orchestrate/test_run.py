"""RUN runs registered procedures for agents with activation:run, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.handler import Refusal
from bespeak.contract.procedure import Procedure
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

FRIEND = "b" * 64
METHODS = ("RUN", "REGISTER", "CHAIN")
ROOMS = make_endpoint(
    "FIND", "/rooms", lambda given: {"rooms": [given.get("floor", 0)]}, properties={"floor": {"type": "integer"}}
)
BOOK = make_endpoint("BOOK", "/rooms", lambda _: {"booked": True}, impact="reversible", scopes=("rooms:book",))


def square(number: int) -> dict[str, int]:
    """Square a number."""
    return {"square": number * number}


def refuse(number: int = 0) -> dict[str, int]:
    """Refuse.

    Errors:
        too_low: The number is too low.
    """
    raise Refusal("too_low", "The number is too low.")


async def hang() -> dict[str, int]:
    """Wait for ever."""
    await asyncio.Event().wait()
    return {}


def procedure(procedure_id: str, target: Any = square, **fields: Any) -> Procedure:
    return Procedure(procedure_id=procedure_id, target=target, **fields)


CHAINED = Procedure(
    procedure_id="look.up",
    steps=(
        {"name": "find", "method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "input.floor"}}},
        {"method": "FIND", "path": "/rooms", "parameters": {"floor": {"$from": "find.rooms[0]"}}},
    ),
    input_schema={"type": "object", "properties": {"floor": {"type": "integer"}}, "required": ["floor"]},
)
ALL = (procedure("square"), procedure("refuse", refuse), procedure("hang", hang), CHAINED)


async def run(
    bench: StatefulBench, procedure_id: str, given: Any = None, scope: str = "activation:run", **fields: Any
) -> Any:
    body = {"procedure_id": procedure_id, **({} if given is None else {"input": given}), **fields}
    return await bench.send("RUN", "/", body, authority_scope=scope)


@pytest.mark.requirement("METHODS-8.8-2")
@pytest.mark.process
async def test_a_procedure_is_run_by_its_id_and_returns_its_output() -> None:
    async with keeping(ROOMS, methods=METHODS, procedures=ALL) as bench:
        reply = await run(bench, "square", {"number": 4})
        assert (reply.status, reply.json["result"]["status"]) == (200, "completed")
        assert reply.json["result"]["output"] == {"square": 16}
        found = (await run(bench, "look.up", {"floor": 3})).json["result"]
        assert (found["output"], found["steps"][0]["status"]) == ({"rooms": [3]}, "done")


@pytest.mark.requirement("METHODS-8.8-3")
async def test_running_takes_the_scope_and_those_of_the_procedure() -> None:
    chain = Procedure(procedure_id="chain", steps=({"method": "FIND", "path": "/rooms"},), scopes=("math:square",))
    given = (procedure("square", scopes=("math:square",)), chain)
    async with keeping(ROOMS, methods=METHODS, procedures=given) as bench:
        for name, values in (("square", {"number": 2}), ("chain", {})):
            assert (await run(bench, name, values, scope="math:square")).status == 455
            assert (await run(bench, name, values)).error["missing_scopes"] == ["math:square"]
            both = await run(bench, name, values, scope="activation:run, math:square")
            assert both.json["result"]["status"] == "completed"


@pytest.mark.requirement("METHODS-8.8-1", "METHODS-8.8-4", "METHODS-10.3-1", "CORE-4.13-2")
@pytest.mark.parametrize("text", ["rm -rf /", "square; ls", "import os", "proc-" + "0" * 32, "SQUARE", "../square"])
async def test_free_form_strings_are_never_run(text: str) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        refused = await run(bench, text)
        assert (refused.status, refused.error["code"]) == (404, "procedure-not-found")


@pytest.mark.requirement("METHODS-8.8-4")
@pytest.mark.parametrize("given", [{"number": "4"}, {}, {"number": 4, "more": 1}, {"number": {"$expr": "2"}}])
async def test_input_that_the_procedure_does_not_take_is_refused(given: dict[str, Any]) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        refused = await run(bench, "square", given)
        assert (refused.status, refused.error["code"]) == (422, "invalid-input")
        assert (await run(bench, "square", "ls")).status == 422


async def test_a_refusal_of_the_procedure_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        with caplog.at_level(logging.INFO):
            result = (await run(bench, "refuse", {"number": 3})).json["result"]
        assert (result["status"], result["error"]["code"]) == ("failed", "too_low")
        # The input is in the audit record alone, and a run without one is a warning.
        assert "number" not in caplog.text
        lines = [entry for entry in caplog.records if entry.getMessage().startswith(f"RUN 'refuse' by {AGENT}")]
        assert [entry.levelno for entry in lines] == ([] if bench.bench.server.audited else [logging.WARNING])


@pytest.mark.requirement("METHODS-8.8-4")
async def test_a_procedure_that_takes_too_long_is_answered_408() -> None:
    async with keeping(methods=METHODS, procedures=ALL) as bench:
        reply = await run(bench, "hang", timeout=0.01)
        assert (reply.status, reply.error["code"]) == (408, "timeout")


@pytest.mark.requirement("METHODS-10.3-2")
async def test_every_run_is_recorded_with_its_procedure_and_input() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(methods=METHODS, procedures=ALL, document=document) as bench:
        audit_id = (await run(bench, "square", {"number": 4})).header("Audit-ID")
        seen = await bench.send("INSPECT", "/", {"target": "audit", "audit_id": audit_id})
        assert seen.json["result"]["record"]["extra"]["input"] == {"procedure_id": "square", "input": {"number": 4}}


@pytest.mark.parametrize(("idempotent", "state", "runs"), [(True, "completed", 2), (False, "failed", 1)])
async def test_a_run_that_was_interrupted_is_repeated_only_if_it_is_idempotent(
    tmp_path: Path, *, idempotent: bool, state: str, runs: int
) -> None:
    begun: list[str] = []
    started, place = asyncio.Event(), str(tmp_path / "bespeak.db")

    async def work(part: str) -> dict[str, str]:
        """Work on a part; the first time, for ever."""
        begun.append(part)
        started.set()
        if len(begun) == 1:
            await asyncio.Event().wait()
        return {"part": part}

    given = {"methods": METHODS, "procedures": (procedure("work", work, idempotent=idempotent),)}
    async with keeping(store=open_store(place, role="sole"), **given) as bench:
        waiting = asyncio.create_task(run(bench, "work", {"part": "a"}))
        await started.wait()
        [workflow_id] = bench.bench.server.workflows._driving
    waiting.cancel()
    async with keeping(store=open_store(place, role="sole"), **given) as bench:
        found = await bench.bench.server.workflows.wait(workflow_id, 20.0)
        assert (found.record.state, begun) == (state, ["a"] * runs)
        assert ("interrupted" in found.rows[0].output) is not idempotent
