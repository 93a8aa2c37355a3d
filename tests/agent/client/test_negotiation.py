"""A negotiation against servers that follow a script: every answer that the drafts know, and some that they do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.agent.client.scripted import AGENT, Script, Seen, Server, in_turn, manifest, service_of, write
from tests.cases import rows

from bespeak.agent.client import errors, negotiation
from bespeak.agent.client.connect import connect
from bespeak.agent.client.negotiation import MOST_TURNS, Synthesis, define
from bespeak.agent.client.sender import RetryPolicy
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.synchronous import blocking
from bespeak.errors import RemoteProtocolError

pytestmark = pytest.mark.anyio
ASKED: dict[str, Any] = {"given": ["max_price:number"], "needs": ["rooms[].room_id:string"]}
DEFINITION = json.loads(json.dumps(define("FIND", "/rooms/cheap", **ASKED).definition))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "_POLLING", RetryPolicy(first_delay=0, longest_delay=0))


def answer(status: int, body: Any = None, **headers: str) -> Script:
    return lambda seen, writer: write(writer, status, body, **headers)


def approved(definition: Any = DEFINITION, **members: Any) -> Script:
    body = {"endpoint": definition, "synthesis_id": "syn-1", "expires_at": "2027-01-01T00:00:00Z", **members}
    return answer(263, body, Negotiation_ID="n-1")


def rejected(counter: Any = None, reason: str | None = "composition-impossible", **members: Any) -> Script:
    error = {"code": "proposal-rejected", "reason": reason, "explanation": "Say which.", "counter_proposal": counter}
    return answer(463, {"error": {**error, **members}}, Negotiation_ID="n-1")


def changed(**changes: Any) -> dict[str, Any]:
    semantic = {**DEFINITION["semantic"], **changes.pop("semantic", {})}
    return {**DEFINITION, "semantic": semantic, **changes}


@asynccontextmanager
async def hotel(*scripts: Script, endpoints: Any = (), **options: Any) -> AsyncIterator[tuple[ServiceClient, Server]]:
    """A service with a manifest, which answers everything else by the scripts, in turn."""
    others = in_turn(*scripts)

    def script(seen: Seen, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        if seen.line == "AGTP/1.0 DISCOVER /":
            write(writer, 200, manifest(*endpoints, versions=("1.1.0",)))
            return None
        return others(seen, writer)

    async with service_of(script, **{"agent_id": AGENT, **options}) as (service, server):
        yield service, server


def sent(server: Server) -> list[tuple[str, Any, dict[str, str]]]:
    return [
        (seen.line.removeprefix("AGTP/1.0 "), json.loads(seen.body or b"null"), seen.headers)
        for seen in server.seen
        if "DISCOVER" not in seen.line
    ]


async def propose(service: ServiceClient, **options: Any) -> Synthesis:
    return await service.propose("FIND", "/rooms/cheap", **{**ASKED, **options})


@pytest.mark.requirement("API-17.2-3")
async def test_approved_endpoint_is_returned_with_its_contract_and_called() -> None:
    found = {"rooms": [{"room_id": "12"}]}
    async with hotel(approved(plan=["1. QUERY /rooms", "2. keep"]), answer(200, found)) as (service, server):
        synthesis = await propose(service)
        assert await synthesis.call(max_price=90) == found
    expected = ("syn-1", "n-1", "2027-01-01T00:00:00Z", ())
    assert (synthesis.synthesis_id, synthesis.negotiation_id, synthesis.expires_at, synthesis.notes) == expected
    assert synthesis.explanation == ("1. QUERY /rooms", "2. keep")
    assert synthesis.endpoint.key == ("FIND", "/rooms/cheap")
    (line, body, headers), (called, given, more) = sent(server)
    assert (line, headers["agent-id"], body) == ("PROPOSE /", AGENT, {**DEFINITION, "name": "FIND"})
    assert headers["content-type"] == "application/vnd.agtp.endpoint+json"
    assert (called, given, more["synthesis-id"]) == ("FIND /rooms/cheap", {"max_price": 90}, "syn-1")


async def test_session_scopes_and_duration_are_sent_and_refused_persistence_is_noted() -> None:
    options: dict[str, Any] = {"session_id": "s-1", "persistent": True, "duration": "7d", "scopes": ["rooms:read"]}
    async with hotel(approved(persistent=True, granted_duration="1d"), answer(200, {})) as (service, server):
        synthesis = await propose(service, **options)
        await synthesis.call(max_price=1)
    assert (synthesis.persistent, synthesis.granted_duration) == (True, "1d")
    (_, body, headers), (_, _, called) = sent(server)
    assert {name: body[name] for name in body.keys() - DEFINITION} == {
        "name": "FIND",
        "session_id": "s-1",
        "persistent": True,
        "requested_duration": "7d",
        "scope_requested": ["rooms:read"],
    }
    for seen in (headers, called):
        assert (seen["session-id"], seen["authority-scope"]) == ("s-1", "rooms:read")
    async with hotel(approved(persistent=False)) as (service, _):
        assert (await propose(service, persistent=True)).notes == ("the server did not make it persistent",)


async def test_pending_proposal_is_polled_until_it_is_decided_or_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = answer(261, {"proposal_id": "p-1", "estimated_duration": "2s"}, Negotiation_ID="n-1")
    async with hotel(pending, pending, approved()) as (service, server):
        assert (await propose(service)).proposal_id == "p-1"
    expected = [("PROPOSE /", None), ("QUERY /proposals/p-1", "n-1"), ("QUERY /proposals/p-1", "n-1")]
    assert [(line, headers.get("negotiation-id")) for line, _, headers in sent(server)] == expected
    pending = answer(261, {"proposal_id": "p-1"}, Negotiation_ID="n-1", Retry_After="20")
    async with hotel(pending) as (service, server):
        with pytest.raises(errors.ProposalPendingError, match="p-1 is not decided yet") as caught:
            await propose(service, wait=10)
    assert (caught.value.proposal_id, caught.value.negotiation_id) == ("p-1", "n-1")
    assert len(sent(server)) == 1
    monkeypatch.setattr(negotiation, "_MOST_POLLS", 5)
    async with hotel(answer(261, {"proposal_id": "p-1"})) as (service, server):
        with pytest.raises(errors.ProposalPendingError):
            await propose(service)
    assert len(sent(server)) == 6


@rows(
    "status, body, lacking",
    *[(261, body, "has no proposal_id") for body in ({}, {"proposal_id": 7}, {"proposal_id": "a\r\nb"})],
    *[(263, body, "263 reply has no usable endpoint") for body in ({}, {"endpoint": []}, [1])],
    (263, {"endpoint": {"method": 3}}, "263 reply has no usable endpoint"),
)
async def test_answer_without_a_usable_id_or_endpoint_is_a_server_fault(status: int, body: Any, lacking: str) -> None:
    async with hotel(answer(status, body)) as (service, _):
        with pytest.raises(RemoteProtocolError, match=lacking):
            await propose(service)


async def test_counter_proposal_is_followed_if_it_gives_everything_and_where_it_was_offered() -> None:
    counter = changed(description="Rooms whose price is at most max_price.")
    async with hotel(rejected(counter), approved(counter)) as (service, server):
        synthesis = await propose(service)
    assert synthesis.notes == ("the server's counter-proposal was followed: Say which.",)
    (_, first, before), (_, second, after) = sent(server)
    assert (first["description"], second["description"]) == (DEFINITION["description"], counter["description"])
    assert ("negotiation-id" in before, after["negotiation-id"]) == (False, "n-1")
    counter = changed(path="/rooms/affordable")
    async with hotel(rejected(counter), approved(counter), rejected(counter), approved(DEFINITION)) as (service, _):
        assert (await propose(service)).endpoint.path == "/rooms/affordable"
        with pytest.raises(errors.ContractMismatchError, match="it is FIND /rooms/cheap, not FIND /rooms/affordable"):
            await propose(service)


@rows(
    "counter, said",
    (changed(output_schema={"type": "object"}), "output `rooms`: is removed"),
    (changed(semantic={"impact": "irreversible"}), "its impact is irreversible"),
    (changed(semantic={"impact": "harmless"}), "its impact is irreversible"),
    (changed(required_scopes=["admin:all"]), "it requires the scope admin:all"),
    ({"method": "FIND", "path": "/rooms/cheap"}, "the server does not state input_schema"),
)
async def test_counter_proposal_that_gives_less_is_not_followed_and_says_why(counter: Any, said: str) -> None:
    async with hotel(rejected(counter), scopes=["rooms:read"]) as (service, server):
        with pytest.raises(errors.ProposalRejectedError) as caught:
            await propose(service)
    assert len(sent(server)) == 1
    assert said in caught.value.__notes__[0]


async def test_counter_proposal_that_changes_something_is_followed_only_if_the_caller_says_so() -> None:
    asked: dict[str, Any] = {"given": ["room_id"], "needs": ["reservation_id"]}
    deed = {**define("BOOK", "/room", **asked).definition, "description": "Books the first room."}
    async with hotel(rejected(deed), rejected(deed), approved(deed)) as (service, server):
        with pytest.raises(errors.ProposalRejectedError) as caught:
            await service.propose("BOOK", "/room", **asked)
        followed = await service.propose("BOOK", "/room", **asked, follow_effects=True)
    assert caught.value.counter_proposal["description"] == "Books the first room."
    assert "it changes something" in caught.value.__notes__[0]
    assert followed.is_counter_proposal
    assert len(sent(server)) == 3


@pytest.mark.parametrize("reason", ["ambiguous", "unheard-of", "", None])
async def test_counter_proposal_of_a_doubtful_service_is_followed_only_if_the_caller_says_so(reason: Any) -> None:
    counter = changed(description="Finds the rooms of the first hotel.")
    turns = (rejected(counter, reason), rejected(counter, reason), approved(counter))
    async with hotel(*turns) as (service, server):
        with pytest.raises(errors.ProposalRejectedError) as caught:
            await propose(service, follow_effects=True)
        assert len(sent(server)) == 1
        followed = await propose(service, follow_ambiguous=True)
    assert "doubts what is meant" in caught.value.__notes__[0]
    assert followed.is_counter_proposal


@pytest.mark.parametrize(("says", "turns"), [(True, 2), (False, 1)])
async def test_function_decides_about_a_doubtful_counter_proposal(says: bool, turns: int) -> None:
    asked: list[errors.ProposalRejectedError] = []

    def decide(error: errors.ProposalRejectedError) -> bool:
        asked.append(error)
        return says

    counter = changed(description="Another.")
    script = (rejected(counter, "ambiguous", counter_plan=["Step 1."]), rejected(None, "ambiguous"))
    async with hotel(*script) as (service, server):
        with pytest.raises(errors.ProposalRejectedError):
            await propose(service, follow_ambiguous=decide)
    assert [list(error.counter_plan) for error in asked] == [["Step 1."]]
    assert len(sent(server)) == turns


async def test_nobody_is_asked_about_a_counter_proposal_that_does_not_fit() -> None:
    def decide(_: errors.ProposalRejectedError) -> bool:
        raise AssertionError

    async with hotel(rejected(changed(output_schema={"type": "object"}), "ambiguous")) as (service, _):
        with pytest.raises(errors.ProposalRejectedError):
            await propose(service, follow_ambiguous=decide)


@pytest.mark.parametrize("counter", [None, "QUERY /rooms", [], {"path": 3}, {"endpoint": "x"}])
async def test_rejection_without_a_usable_counter_proposal_is_final(counter: Any) -> None:
    async with hotel(rejected(counter, "composition-impossible")) as (service, server):
        with pytest.raises(errors.ProposalRejectedError) as caught:
            await propose(service, escalate=True)
    assert caught.value.rejection == "composition-impossible"
    assert len(sent(server)) == 1


@rows("texts, turns", (["Another."], 2), ([f"Number {number}." for number in range(10)], MOST_TURNS))
async def test_proposals_end_with_a_repeated_counter_proposal_and_after_three(texts: list[str], turns: int) -> None:
    async with hotel(in_turn(*(rejected(changed(description=text)) for text in texts))) as (service, server):
        with pytest.raises(errors.ProposalRejectedError):
            await propose(service)
    assert len(sent(server)) == turns <= 3


@pytest.mark.requirement("API-10.2-2", "CORE-10.2-5")
async def test_three_rejections_are_escalated_if_the_caller_allows_it() -> None:
    counters = [rejected(changed(description=text)) for text in "abc"]
    case = answer(202, {"status": 202, "task_id": "n-1", "result": {"escalation_id": "esc-7", "status": "open"}})
    async with hotel(*counters, case) as (service, server):
        with pytest.raises(
            errors.ProposalEscalatedError, match="FIND /rooms/cheap was escalated as case esc-7"
        ) as caught:
            await propose(service, escalate=True)
    assert (caught.value.escalation_id, caught.value.rejection) == ("esc-7", "composition-impossible")
    line, body, headers = sent(server)[-1]
    assert (line, headers["negotiation-id"]) == ("ESCALATE /", "n-1")
    assert (body["task_id"], body["reason"], body["priority"]) == ("n-1", "resource_unavailable", "normal")
    assert body["context"]["proposal"] == DEFINITION


async def test_server_that_demands_an_escalation_gets_one_and_a_refused_one_is_noted() -> None:
    case = answer(202, {"escalation_id": "esc-8"})
    async with hotel(rejected(None, "policy-refused", must_escalate=True), case) as (service, server):
        with pytest.raises(errors.ProposalEscalatedError, match="esc-8"):
            await propose(service, escalate=True)
    assert sent(server)[-1][1]["reason"] == "scope_limit"
    refused = answer(401, {"error": {"code": "unknown-agent"}})
    async with hotel(rejected(None, must_escalate=True), refused) as (service, _):
        with pytest.raises(errors.ProposalRejectedError) as caught:
            await propose(service, escalate=True)
    assert "could not be escalated: 401 unknown-agent" in caught.value.__notes__[0]
    missing = answer(422, {"error": {"code": "missing-required-params", "missing": ["decision_point"]}})
    case = answer(200, {"escalation_id": "esc-9", "status": "pending"})
    async with hotel(rejected(None, must_escalate=True), missing, case) as (service, server):
        with pytest.raises(errors.ProposalEscalatedError, match="esc-9"):
            await propose(service, escalate=True)
    assert sent(server)[-1][1]["decision_point"] == "PROPOSE FIND /rooms/cheap"


@rows(
    "definition, said",
    (
        changed(semantic={"impact": "irreversible"}),
        "its impact is irreversible, and at most informational is allowed",
    ),
    (changed(path="/rooms"), "it is FIND /rooms, not FIND /rooms/cheap"),
    (changed(output_schema={"type": "object", "properties": {}}), "output `rooms`: is removed"),
)
async def test_approval_of_something_else_is_an_error_and_is_never_called(definition: Any, said: str) -> None:
    async with hotel(approved(definition)) as (service, server):
        with pytest.raises(errors.ContractMismatchError) as caught:
            await propose(service)
    assert said in str(caught.value)
    assert len(sent(server)) == 1


async def test_existing_endpoints_are_used_without_asking_except_compositions() -> None:
    declared = changed(handler={"type": "registered_function"})
    async with hotel(answer(200, {"rooms": []}), endpoints=[declared]) as (service, server):
        synthesis = await propose(service)
        await synthesis.call(max_price=1)
    assert (synthesis.synthesis_id, synthesis.notes) == (None, ("the service has this endpoint already",))
    assert [line for line, _, _ in sent(server)] == ["FIND /rooms/cheap"]
    async with hotel(approved(), endpoints=[DEFINITION]) as (service, _):
        assert (await propose(service)).synthesis_id == "syn-1"
    existing = changed(path="/rooms")
    async with hotel(rejected(existing), answer(200, {}), endpoints=[existing]) as (service, server):
        synthesis = await propose(service)
        await synthesis.call(max_price=1)
    assert synthesis.synthesis_id is None
    assert [line for line, _, _ in sent(server)] == ["PROPOSE /", "FIND /rooms"]


@rows(
    "status, error, kind",
    (262, {"type": "scope-required", "missing_scopes": ["rooms:read"]}, errors.AuthorityMissingError),
    (459, {"code": "method-violation"}, errors.MethodViolationError),
)
async def test_other_refusals_are_raised_as_for_any_call(status: int, error: Any, kind: type[Exception]) -> None:
    async with hotel(answer(status, {"error": error})) as (service, _):
        with pytest.raises(kind):
            await propose(service)


async def test_negotiation_goes_on_under_its_id_and_refused_calls_are_errors() -> None:
    missing = answer(262, {"error": {"type": "scope-required", "missing_scopes": ["rooms:read"]}}, Negotiation_ID="n-5")
    async with hotel(missing, approved()) as (service, server):
        with pytest.raises(errors.AuthorityMissingError) as caught:
            await propose(service)
        await propose(service, scopes=caught.value.missing_scopes, negotiation_id=caught.value.negotiation_id)
    assert sent(server)[1][2]["negotiation-id"] == "n-5"
    async with hotel(approved(), answer(422, {"error": {"code": "composition_failed"}})) as (service, _):
        synthesis = await propose(service)
        with pytest.raises(errors.BusinessError, match="composition_failed"):
            await synthesis.call(max_price=1)
    async with service_of(in_turn(answer(262, {"error": {}}), approved())) as (service, _):
        assert (await propose(service)).synthesis_id == "syn-1"


async def test_shapes_of_the_reference_server_are_read() -> None:
    endpoint = {"method": "AUDIT", "name": "AUDIT", "input": {"subject": "string"}}
    body = {"synthesis_id": "syn-E", "endpoint": endpoint, "persistent": False, "method": "AUDIT", "path": "/"}
    started = answer(261, {"proposal_id": "prop-1", "polling_path": "/proposals"})
    wrapped = {"method": "AUDIT", "synthesis_id": "syn-E", "outcome": "ok", "output": {"a": 1}, "steps": []}
    async with hotel(started, answer(263, body), answer(200, wrapped)) as (service, server):
        synthesis = await service.propose("AUDIT", "/reports", given=["subject"], needs=["a"])
        assert await synthesis.call(subject="acme") == {"a": 1}
    assert "the server does not state semantic" in synthesis.notes
    expected = [("PROPOSE /", None), ("QUERY /proposals", "prop-1"), ("AUDIT /", None)]
    assert [(line, body.get("proposal_id")) for line, body, _ in sent(server)] == expected


async def test_blocking_client_proposes_and_calls() -> None:
    async with hotel(approved(), answer(200, {"rooms": []})) as (_, server):

        def talk() -> Any:
            with blocking(connect)(server.uri) as client:
                return client.propose("FIND", "/rooms/cheap", **ASKED).call(max_price=90)

        assert await asyncio.to_thread(talk) == {"rooms": []}
