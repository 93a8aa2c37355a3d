"""ESCALATE: a decision is stored once, unchanged, for its recipient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service import AGENT
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.runtime.methods.cases import MOST_CONTENT
from bespeak.state.store.commands.cases import KINDS, DecideCase, ListCases, ReadCase
from bespeak.state.store.opening import open_store
from bespeak.state.store.settings import CaseSettings

pytestmark = pytest.mark.anyio

OTHER, DESK = "b" * 64, "d" * 64
CONTENT: dict[str, Any] = {
    "task_id": "task-7",
    "reason": "ethical_flag",
    "context": {"guest": "Ünal\u0000", "amounts": [1, 2.5, None], "nested": {"b": 1, "a": 2}},
}


async def escalate(bench: StatefulBench, agent: str = AGENT, **fields: Any) -> dict[str, Any]:
    reply = await bench.send("ESCALATE", "/", {**CONTENT, **fields}, agent=agent)
    assert (reply.status, reply.json["status"]) == (202, 202)
    result: dict[str, Any] = reply.json["result"]
    return result


@pytest.mark.requirement("CORE-4.9-3")
async def test_the_receipt_names_the_case_and_its_recipient() -> None:
    async with keeping() as bench:
        result = await escalate(bench, recipient=DESK, deadline="2099-01-01T12:00:00+01:00")
        assert result == {
            "escalation_id": result["escalation_id"],
            "routed_to": DESK,
            "status": "pending",
            "task_paused": True,
            "estimated_review_by": "2099-01-01T11:00:00Z",
        }


@pytest.mark.requirement("CORE-4.9-5", "CORE-4.9-6")
async def test_the_content_is_stored_unchanged() -> None:
    async with keeping() as bench:
        result = await escalate(bench, recipient="mailto:desk@hotel.example", priority="urgent")
        sent = {**CONTENT, "recipient": "mailto:desk@hotel.example", "priority": "urgent"}
        case = await bench.store.read(ReadCase(result["escalation_id"]))
        assert (case.kind, case.agent_id, case.recipient) == ("escalation", AGENT, "mailto:desk@hotel.example")
        assert msgspec.json.decode(case.subject) == sent


PRECISE = '{"amount": 0.1000000000000000055511151231257827, "big": 123456789012345678901234567890, "unit": "\\u20ac"}'


@pytest.mark.requirement("CORE-4.9-6")
@pytest.mark.parametrize(
    "form", ['{"task_id":"t-1","reason":"scope_limit","context":%s}', '{"parameters":{"context":%s}}']
)
async def test_not_even_a_digit_of_a_number_is_lost(form: str) -> None:
    query = "" if "task_id" in form else "?task_id=t-1&reason=scope_limit"
    async with keeping() as bench:
        ids = []
        for content in (PRECISE, PRECISE.replace("7827", "7828"), PRECISE.replace(": ", ":")):
            reply = await bench.send("ESCALATE", f"/{query}", (form % content).encode())
            assert reply.status == 202
            ids.append(reply.json["result"]["escalation_id"])
        assert len(set(ids)) == 2
        assert ids[0] == ids[2]
        case = await bench.store.read(ReadCase(ids[0]))
        assert PRECISE in case.subject


@pytest.mark.requirement("CORE-4.9-3")
async def test_without_a_recipient_the_configured_default_decides() -> None:
    async with keeping() as bench:
        assert (await escalate(bench))["routed_to"] == "operator"
        bench.bench.server.cases = CaseSettings(default_recipient=DESK)
        assert (await escalate(bench, task_id="task-8"))["routed_to"] == DESK


@pytest.mark.requirement("CORE-4.9-7")
async def test_the_same_escalation_is_one_case_while_it_is_open() -> None:
    async with keeping() as bench:
        first = await escalate(bench)
        assert await escalate(bench) == first
        others = [await escalate(bench, task_id="task-8"), await escalate(bench, agent=OTHER)]
        assert first["escalation_id"] not in [other["escalation_id"] for other in others]
        await bench.store.do(DecideCase(first["escalation_id"], "deferred", DESK, "att", kinds=KINDS))
        assert await escalate(bench) == {**first, "status": "deferred"}
        await bench.store.do(DecideCase(first["escalation_id"], "rejected", DESK, "att", kinds=KINDS))
        assert (await escalate(bench))["escalation_id"] != first["escalation_id"]


async def test_an_invalid_deadline_is_422() -> None:
    async with keeping() as bench:
        reply = await bench.send("ESCALATE", "/", {**CONTENT, "deadline": "soon"})
        assert (reply.status, reply.error["code"]) == (422, "invalid-deadline")
        assert await bench.store.read(ListCases()) == []


async def test_a_recipient_that_cannot_be_printed_is_422() -> None:
    async with keeping() as bench:
        reply = await bench.send("ESCALATE", "/", {**CONTENT, "recipient": "desk\u0000"})
        assert (reply.status, reply.error["code"]) == (422, "invalid-recipient")


async def test_too_much_content_is_413() -> None:
    async with keeping() as bench:
        reply = await bench.send("ESCALATE", "/", {**CONTENT, "context": {"x": "y" * MOST_CONTENT}})
        assert (reply.status, reply.error["code"]) == (413, "context-too-large")


@pytest.mark.requirement("CORE-4.9-5")
async def test_an_escalation_survives_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(store=open_store(place, role="sole")) as bench:
        first = await escalate(bench)
    async with keeping(store=open_store(place, role="sole")) as bench:
        assert await escalate(bench) == first


async def test_too_many_cases_are_429_and_none_is_lost() -> None:
    async with keeping(document=ServerDocument(cases=CaseSettings(most_open=2))) as bench:
        await escalate(bench, task_id="task-1")
        await escalate(bench, task_id="task-2")
        refused = await bench.send("ESCALATE", "/", CONTENT)
        assert (refused.status, refused.error["code"]) == (429, "too-many-cases")
        assert refused.header("Retry-After") == "60"
        assert (await bench.send("ESCALATE", "/", CONTENT, agent=OTHER)).status == 202
