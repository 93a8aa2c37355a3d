"""ESCALATE: a decision is stored once, unchanged, for its recipient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.instant import read_instant
from bespeak.runtime.methods.cases import MOST_ATTESTATION, MOST_CONTENT
from bespeak.state.store.commands.cases import KINDS, DecideCase, ListCases, OpenCase, ReadCase, UseCase
from bespeak.state.store.settings import CaseSettings, open_store

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


@pytest.mark.requirement("CORE-4.9-3", "CORE-4.9-8", "CORE-4.9-9")
async def test_the_receipt_names_the_case_and_its_recipient(bench: StatefulBench) -> None:
    result = await escalate(bench, recipient=DESK, deadline="2099-01-01T12:00:00+01:00")
    assert result == {
        "escalation_id": result["escalation_id"],
        "routed_to": DESK,
        "status": "pending",
        "task_paused": True,
        "estimated_review_by": "2099-01-01T11:00:00Z",
    }


@pytest.mark.requirement("CORE-4.9-5", "CORE-4.9-6")
async def test_the_content_is_stored_unchanged(bench: StatefulBench) -> None:
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
        assert PRECISE in (await bench.store.read(ReadCase(ids[0]))).subject


@pytest.mark.requirement("CORE-4.9-3", "CORE-4.9-8")
async def test_without_a_recipient_the_configured_default_decides(bench: StatefulBench) -> None:
    assert (await escalate(bench))["routed_to"] == "operator"
    bench.bench.server.cases = CaseSettings(default_recipient=DESK)
    assert (await escalate(bench, task_id="task-8"))["routed_to"] == DESK


@pytest.mark.requirement("CORE-4.9-7")
async def test_the_same_escalation_is_one_case_while_it_is_open(bench: StatefulBench) -> None:
    first = await escalate(bench)
    assert await escalate(bench) == first
    others = [await escalate(bench, task_id="task-8"), await escalate(bench, agent=OTHER)]
    assert first["escalation_id"] not in [other["escalation_id"] for other in others]
    await bench.store.do(DecideCase(first["escalation_id"], "deferred", DESK, "att", kinds=KINDS))
    assert await escalate(bench) == {**first, "status": "deferred"}
    await bench.store.do(DecideCase(first["escalation_id"], "rejected", DESK, "att", kinds=KINDS))
    assert (await escalate(bench))["escalation_id"] != first["escalation_id"]


@rows(
    "changes, expected",
    ({"deadline": "soon"}, (400, "invalid-time")),
    ({"recipient": "desk\u0000"}, (422, "invalid-recipient")),
    ({"context": {"x": "y" * MOST_CONTENT}}, (413, "context-too-large")),
)
async def test_an_escalation_that_cannot_be_kept_is_refused(
    bench: StatefulBench, changes: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert (await bench.send("ESCALATE", "/", {**CONTENT, **changes})).refusal == expected
    assert await bench.store.read(ListCases()) == []


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


async def asked(bench: StatefulBench, kind: str = "escalation", **fields: Any) -> None:
    await bench.store.do(OpenCase("case-1", kind, AGENT, DESK, "digest", "{}", **fields))


async def confirm(
    bench: StatefulBench, status: str = "accepted", by: str = DESK, scope: str | None = None, **fields: Any
) -> Reply:
    headers = {} if scope is None else {"authority_scope": scope}
    return await bench.send("CONFIRM", "/", {"target_id": "case-1", "status": status, **fields}, agent=by, **headers)


@pytest.mark.requirement("CORE-4.10-2", "CORE-4.10-3", "CORE-4.10-6", "CORE-4.10-7")
@pytest.mark.parametrize("status", ["accepted", "rejected", "deferred"])
async def test_the_decision_of_the_recipient_is_recorded(bench: StatefulBench, status: str) -> None:
    await asked(bench)
    reply = await confirm(bench, status, reason="because", attestation={"sig": "x"})
    assert reply.status == 200
    case = await bench.store.read(ReadCase("case-1"))
    result = reply.json["result"]
    assert result.keys() == {"target_id", "status", "confirmed_at", "attestation_id"}
    assert (result["target_id"], result["status"], result["attestation_id"]) == ("case-1", status, case.attestation_id)
    assert read_instant(result["confirmed_at"]) == pytest.approx(case.decided_at, abs=1)
    assert (case.state, case.decided_by, case.reason, case.attestation) == (status, DESK, "because", '{"sig":"x"}')


@pytest.mark.requirement("CORE-6.1-2")
@rows(
    "kind, scope, expected",
    ("escalation", "escalation:confirm", 200),
    ("escalation", "escalation:*", 200),
    ("escalation", "confirmation:decide", 403),
    ("escalation", None, 403),
    ("confirmation", "confirmation:decide", 200),
    ("confirmation", "escalation:confirm", 403),
)
async def test_agent_with_scope_decides_too(bench: StatefulBench, kind: str, scope: str | None, expected: int) -> None:
    await asked(bench, kind)
    reply = await confirm(bench, by=OTHER, scope=scope)
    assert reply.status == expected
    if expected == 403:
        needed = {"escalation": "escalation:confirm", "confirmation": "confirmation:decide"}[kind]
        assert (reply.error["code"], reply.error["required_scopes"]) == ("decision-not-permitted", [needed])
        assert (await bench.store.read(ReadCase("case-1"))).state == "pending"


@pytest.mark.requirement("CORE-4.10-5")
async def test_a_decision_is_final_and_its_repetition_gets_the_first_attestation(bench: StatefulBench) -> None:
    await asked(bench)
    first = (await confirm(bench)).json["result"]
    assert (await confirm(bench)).json["result"] == first
    for reply in (await confirm(bench, "rejected"), await confirm(bench, by=OTHER, scope="escalation:confirm")):
        assert (reply.status, reply.error["code"]) == (409, "already-decided")
        assert reply.error["decision"] == {
            "status": "accepted",
            "attestation_id": first["attestation_id"],
            "decided_by": DESK,
            "decided_at": first["confirmed_at"],
        }


async def test_a_confirmation_that_was_used_is_still_the_accepted_one(bench: StatefulBench) -> None:
    await asked(bench, "confirmation", lifetime=60.0)
    first = (await confirm(bench)).json["result"]
    await bench.store.do(UseCase("case-1", "digest", AGENT))
    assert (await confirm(bench)).json["result"] == first
    assert (await confirm(bench, "rejected")).status == 409


@pytest.mark.requirement("CORE-4.10-4")
@rows(
    "opened, given, expected",
    *(({}, {"target_id": target}, (404, "target-not-found")) for target in ("case-2", "a\u0000b", "x" * 1000)),
    ({"lifetime": 0.0}, {}, (408, "case-expired")),
    # A requester cannot decide its own case with any scope.
    ({}, {"by": AGENT, "scope": "escalation:confirm"}, (403, "own-case")),
)
async def test_a_decision_that_cannot_be_taken_is_refused(
    bench: StatefulBench, opened: dict[str, Any], given: dict[str, Any], expected: tuple[int, str]
) -> None:
    await asked(bench, **opened)
    assert (await confirm(bench, **given)).refusal == expected


async def test_texts_are_bounded(bench: StatefulBench) -> None:
    await asked(bench)
    assert (await confirm(bench, attestation="x" * MOST_ATTESTATION)).status == 413
    assert (await confirm(bench, reason="x" * 5000)).error["code"] == "invalid-reason"
    assert (await confirm(bench, reason="a\u0000b")).error["code"] == "invalid-reason"


async def test_a_decision_survives_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(store=open_store(place, role="sole")) as bench:
        await asked(bench)
        first = (await confirm(bench)).json["result"]
    async with keeping(store=open_store(place, role="sole")) as bench:
        assert (await confirm(bench)).json["result"] == first
