"""CONFIRM: decided once, by the recipient or an authorized agent, never by the requester."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak.protocol.exchange.instant import read_instant
from bespeak.runtime.methods.cases import MOST_ATTESTATION
from bespeak.state.store.commands.cases import OpenCase, ReadCase, UseCase
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio

DESK, OTHER = "d" * 64, "b" * 64


async def asked(bench: StatefulBench, kind: str = "escalation", **fields: Any) -> None:
    await bench.store.do(OpenCase("case-1", kind, AGENT, DESK, "digest", "{}", **fields))


async def confirm(
    bench: StatefulBench, status: str = "accepted", by: str = DESK, scope: str | None = None, **fields: Any
) -> Reply:
    headers = {} if scope is None else {"authority_scope": scope}
    return await bench.send("CONFIRM", "/", {"target_id": "case-1", "status": status, **fields}, agent=by, **headers)


@pytest.mark.requirement("CORE-4.10-2", "CORE-4.10-3")
@pytest.mark.parametrize("status", ["accepted", "rejected", "deferred"])
async def test_the_decision_of_the_recipient_is_recorded(status: str) -> None:
    async with keeping() as bench:
        await asked(bench)
        reply = await confirm(bench, status, reason="because", attestation={"sig": "x"})
        assert reply.status == 200
        case = await bench.store.read(ReadCase("case-1"))
        result = reply.json["result"]
        assert result.keys() == {"target_id", "status", "confirmed_at", "attestation_id"}
        assert (result["target_id"], result["status"]) == ("case-1", status)
        assert result["attestation_id"] == case.attestation_id
        assert read_instant(result["confirmed_at"]) == pytest.approx(case.decided_at, abs=1)
        assert (case.state, case.decided_by, case.reason, case.attestation) == (status, DESK, "because", '{"sig":"x"}')


@pytest.mark.requirement("CORE-6.1-2")
@pytest.mark.parametrize(
    ("kind", "scope", "expected"),
    [
        ("escalation", "escalation:confirm", 200),
        ("escalation", "escalation:*", 200),
        ("escalation", "confirmation:decide", 403),
        ("escalation", None, 403),
        ("confirmation", "confirmation:decide", 200),
        ("confirmation", "escalation:confirm", 403),
    ],
)
async def test_an_agent_with_the_scope_decides_too(kind: str, scope: str | None, expected: int) -> None:
    async with keeping() as bench:
        await asked(bench, kind)
        reply = await confirm(bench, by=OTHER, scope=scope)
        assert reply.status == expected
        if expected == 403:
            needed = {"escalation": "escalation:confirm", "confirmation": "confirmation:decide"}[kind]
            assert (reply.error["code"], reply.error["required_scopes"]) == ("decision-not-permitted", [needed])
            assert (await bench.store.read(ReadCase("case-1"))).state == "pending"


async def test_a_requester_cannot_decide_its_own_case_with_any_scope() -> None:
    async with keeping() as bench:
        await asked(bench)
        reply = await confirm(bench, by=AGENT, scope="escalation:confirm")
        assert (reply.status, reply.error["code"]) == (403, "own-case")


@pytest.mark.requirement("CORE-4.10-5")
async def test_a_decision_is_final_and_its_repetition_gets_the_first_attestation() -> None:
    async with keeping() as bench:
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


async def test_a_confirmation_that_was_used_is_still_the_accepted_one() -> None:
    async with keeping() as bench:
        await asked(bench, "confirmation", lifetime=60.0)
        first = (await confirm(bench)).json["result"]
        await bench.store.do(UseCase("case-1", "digest", AGENT))
        assert (await confirm(bench)).json["result"] == first
        assert (await confirm(bench, "rejected")).status == 409


@pytest.mark.requirement("CORE-4.10-4")
@pytest.mark.parametrize("target", ["case-2", "a\u0000b", "x" * 1000])
async def test_an_unknown_case_is_404(target: str) -> None:
    async with keeping() as bench:
        reply = await confirm(bench, target_id=target)
        assert (reply.status, reply.error["code"]) == (404, "target-not-found")


async def test_a_late_decision_is_408() -> None:
    async with keeping() as bench:
        await asked(bench, lifetime=0.0)
        reply = await confirm(bench)
        assert (reply.status, reply.error["code"]) == (408, "case-expired")


async def test_texts_are_bounded() -> None:
    async with keeping() as bench:
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
