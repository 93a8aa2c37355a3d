"""`bespeak propose`: what it sends, what it prints, and its exit codes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from tests.agent.client.scripted import AGENT, Script, Seen, Server, in_turn, manifest, serving, write
from tests.cases import rows

from bespeak.agent.client.negotiation import define
from bespeak.app.cli.propose import propose

pytestmark = pytest.mark.anyio

WANTED = ("FIND /rooms/cheap", "--given", "max_price:number", "--needs", "rooms[].room_id:string")
DEFINITION: dict[str, Any] = dict(
    define("FIND", "/rooms/cheap", given=["max_price:number"], needs=["rooms[].room_id:string"]).definition
)
PLAN = ["Call QUERY /rooms.", "Keep rooms whose price is at most max_price."]


def answer(status: int, body: Any, **headers: str) -> Script:
    return lambda seen, writer: write(writer, status, body, **headers)


def approved(**members: Any) -> Script:
    return answer(263, {"endpoint": DEFINITION, "synthesis_id": "syn-1", "plan": PLAN, **members})


def rejected(**members: Any) -> Script:
    error = {"code": "proposal-rejected", "reason": "composition-impossible", "explanation": "No price is known."}
    return answer(463, {"error": {**error, **members}})


class Ran:
    """What a run of the command gave."""

    def __init__(self, code: int, out: str, err: str, server: Server) -> None:
        self.code, self.out, self.err = code, out, err
        self.sent = [
            (seen.line.removeprefix("AGTP/1.0 "), json.loads(seen.body or b"null"), seen.headers)
            for seen in server.seen
            if "DISCOVER" not in seen.line
        ]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command against a server that follows scripts."""

    async def against(*scripts: Script, arguments: tuple[str, ...] = WANTED) -> Ran:
        others = in_turn(*scripts)

        def script(seen: Seen, writer: asyncio.StreamWriter) -> Any:
            if "DISCOVER" in seen.line:
                return write(writer, 200, manifest(versions=("1.1.0",)))
            return others(seen, writer)

        async with serving(script) as server:
            given = [server.uri, "--agent-id", AGENT, *arguments]
            code = await asyncio.to_thread(propose.main, given, standalone_mode=False)
            return Ran(code, *capsys.readouterr(), server)

    return against


async def test_approval_is_printed_with_its_contract_and_how_to_call_it(run: Any) -> None:
    ran = await run(approved(expires_at="2027-01-01T00:00:00Z"))
    assert (ran.code, ran.err) == (0, "")
    assert "approved FIND /rooms/cheap  syn-1" in ran.out
    assert "impact    informational, idempotent, confidence 1" in ran.out
    assert "input     max_price: number" in ran.out
    assert "output    rooms[] {room_id}" in ran.out
    assert "until 2027-01-01T00:00:00Z" in ran.out
    assert f"FIND /rooms/cheap max_price:=... --agent-id {AGENT} -H 'Synthesis-Id: syn-1'" in ran.out
    assert PLAN[0] not in ran.out


async def test_names_of_the_server_are_quoted_and_the_plan_is_printed_on_request(run: Any) -> None:
    evil = {**DEFINITION["input_schema"]["properties"], "x;touch y": {"type": "string"}}
    schema = {**DEFINITION["input_schema"], "properties": evil}
    assert "'x;touch y=...'" in (await run(approved(endpoint={**DEFINITION, "input_schema": schema}))).out
    ran = await run(approved(), arguments=(*WANTED, "--explain"))
    assert ran.out.index(PLAN[0]) < ran.out.index(PLAN[1])
    silent = await run(approved(plan=None), arguments=(*WANTED, "--explain"))
    assert "the service does not explain it" in silent.out


@pytest.mark.parametrize(
    "call", [("--call", "max_price=90"), ("--call", "--", "max_price=90"), ("--call", "max_price:=90")]
)
async def test_endpoint_is_called_at_once_and_only_its_output_is_on_stdout(run: Any, call: tuple[str, ...]) -> None:
    ran = await run(approved(), answer(200, {"rooms": []}), arguments=(*WANTED, *call))
    assert ran.code == 0
    assert json.loads(ran.out) == {"rooms": []}
    assert "approved FIND /rooms/cheap" in ran.err
    line, body, headers = ran.sent[1]
    assert (line, body, headers["synthesis-id"]) == ("FIND /rooms/cheap", {"max_price": 90}, "syn-1")


async def test_endpoint_without_inputs_can_be_called_and_a_refused_call_ends_with_1(run: Any) -> None:
    definition = dict(define("FIND", "/rooms/cheap").definition)
    ran = await run(approved(endpoint=definition), answer(200, {}), arguments=("FIND /rooms/cheap", "--call"))
    assert (ran.code, ran.sent[1][1]) == (0, None)
    refusal = answer(422, {"error": {"code": "composition_failed", "message": "Step 1 failed."}})
    ran = await run(approved(), refusal, arguments=(*WANTED, "--call", "max_price=90"))
    assert (ran.code, ran.out) == (1, "")
    assert "composition_failed: Step 1 failed." in ran.err


async def test_rejection_says_why_and_what_is_similar(run: Any) -> None:
    similar = [{"method": "QUERY", "path": "/rooms", "description": "Find rooms."}]
    misses = [{"field": "rooms[].price", "reason": "No endpoint has it.", "nearest": "QUERY /rooms"}]
    plan = ["Calls QUERY /rooms."]
    ran = await run(rejected(similar_endpoints=similar, must_escalate=True, misses=misses, counter_plan=plan))
    assert (ran.code, ran.out) == (1, "")
    assert "463" in ran.err
    assert "proposal-rejected: No price is known." in ran.err
    assert "reason: composition-impossible" in ran.err
    assert "similar: QUERY /rooms  Find rooms." in ran.err
    assert "missing: rooms[].price: No endpoint has it. (nearest: QUERY /rooms)" in ran.err
    assert "counter-proposal: Calls QUERY /rooms." in ran.err
    assert "use --escalate" in ran.err


async def test_counter_proposal_pending_proposal_and_other_approval_are_explained_and_not_called(run: Any) -> None:
    counter = {**DEFINITION, "output_schema": {"type": "object"}}
    ran = await run(rejected(counter_proposal=counter))
    assert ran.code == 1
    assert "note: Its counter-proposal FIND /rooms/cheap was not followed: output `rooms`: is removed." in ran.err
    ran = await run(answer(261, {"proposal_id": "prop-5"}), arguments=(*WANTED, "--wait", "0"))
    assert ran.code == 1
    assert "The proposal prop-5 is not decided yet. Propose the same again later." in ran.err
    other = {**DEFINITION, "semantic": {**DEFINITION["semantic"], "impact": "irreversible"}}
    ran = await run(approved(endpoint=other), arguments=(*WANTED, "--call", "max_price=1"))
    assert (ran.code, len(ran.sent)) == (1, 1)
    assert "but not as asked: its impact is irreversible" in ran.err


async def test_counter_proposal_of_a_deed_is_followed_only_on_request(run: Any) -> None:
    deed = dict(define("BOOK", "/room", given=["room_id"], needs=["reservation_id"]).definition)
    counter = {**deed, "description": "Books the first room."}
    wanted = ("BOOK /room", "--given", "room_id", "--needs", "reservation_id", "--call", "room_id=1")
    plan = ["Calls BOOK /room with the first room."]
    refused = await run(rejected(counter_proposal=counter, counter_plan=plan), arguments=wanted)
    assert (refused.code, len(refused.sent)) == (1, 1)
    assert "it changes something, and follow_effects is not set" in refused.err
    assert f"counter-proposal: {plan[0]}" in refused.err
    accepted = (rejected(counter_proposal=counter), approved(endpoint=counter), answer(200, {"reservation_id": "r"}))
    assert (await run(*accepted, arguments=(*wanted, "--follow-effects"))).code == 0


async def test_escalation_is_reported_with_its_case(run: Any) -> None:
    ran = await run(
        rejected(must_escalate=True), answer(202, {"escalation_id": "esc-7"}), arguments=(*WANTED, "--escalate")
    )
    assert ran.code == 1
    assert "escalated: people decide about it as case esc-7" in ran.err


async def test_missing_scopes_are_named_as_for_a_call(run: Any) -> None:
    error = {
        "code": "scope-required",
        "type": "scope-required",
        "message": "More is needed.",
        "missing_scopes": ["a:b"],
    }
    ran = await run(answer(262, {"error": error}))
    assert (ran.code, "declare the scopes with --scope a:b" in ran.err) == (1, True)


async def test_dry_run_sends_nothing_and_json_of_a_call_has_contract_and_output(run: Any) -> None:
    ran = await run(approved(), arguments=(*WANTED, "--dry-run"))
    assert (ran.code, ran.sent) == (0, [])
    assert json.loads(ran.out) == json.loads(json.dumps(DEFINITION))
    ran = await run(approved(), answer(200, {"rooms": []}), arguments=(*WANTED, "--json", "--call", "max_price=1"))
    shown = json.loads(ran.out)
    assert (shown["status"], shown["synthesis_id"], shown["output"]) == (200, "syn-1", {"rooms": []})


@pytest.mark.parametrize("wrapped", [False, True])
async def test_definition_in_a_file_is_proposed(run: Any, tmp_path: Path, wrapped: bool) -> None:
    file = tmp_path / "endpoint.json"
    file.write_text(json.dumps({"endpoint": DEFINITION} if wrapped else DEFINITION))
    ran = await run(approved(), arguments=("-f", str(file), "--persistent", "--duration", "7d"))
    assert ran.code == 0, ran.err
    body = ran.sent[0][1]
    assert (body["path"], body["persistent"], body["requested_duration"]) == ("/rooms/cheap", True, "7d")


@rows(
    "script, expected",
    (approved(), {"status": 263, "synthesis_id": "syn-1"}),
    (rejected(), {"status": 463}),
    (answer(261, {"proposal_id": "p"}), {"status": 261, "body": {"proposal_id": "p"}}),
)
async def test_json_has_the_status_of_the_outcome(run: Any, script: Script, expected: dict[str, Any]) -> None:
    ran = await run(script, arguments=(*WANTED, "--json", "--wait", "0"))
    assert json.loads(ran.out).items() >= expected.items()
    assert ran.code == (0 if expected["status"] == 263 else 1)


async def test_texts_of_the_server_cannot_control_the_terminal(run: Any) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e[red]x[/red]"
    counter = {**DEFINITION, "path": "/x\x1b[2J", "output_schema": {"type": "object"}}
    similar = [{"method": evil, "path": evil, "description": evil}]
    refused = await run(rejected(explanation=evil, reason=evil, similar_endpoints=similar, counter_proposal=counter))
    shown = await run(approved(plan=[evil], expires_at=evil), arguments=(*WANTED, "--explain"))
    for text in (refused.out, refused.err, shown.out, shown.err):
        assert not any(mark in text for mark in ("\x1b", "\x07", "\u202e"))
    assert "[red]x[/red]" in refused.err


@rows(
    "arguments, message",
    ((), "Give the endpoint as 'METHOD /path'"),
    (("FIND",), "Give the endpoint as 'METHOD /path'"),
    (("FIND", "/a", "/b"), "Give the endpoint as 'METHOD /path'"),
    (("FIND", "/a", "-f", __file__), "is not JSON"),
)
async def test_wrong_usage_is_refused(run: Any, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        await run(approved(), arguments=arguments)


@rows(
    "is_terminal, answer_given, options, turns",
    (True, True, (), 2),
    (True, False, (), 1),
    (False, True, (), 1),
    (True, True, ("--json",), 1),
    (False, False, ("--follow-ambiguous",), 2),
)
async def test_doubtful_counter_proposal_is_followed_only_after_a_yes(
    run: Any, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, answer_given: bool, options: Any, turns: int
) -> None:
    terminal = SimpleNamespace(isatty=lambda: is_terminal)
    monkeypatch.setattr("bespeak.app.cli.propose.sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: answer_given)
    counter = {**DEFINITION, "description": "Finds the rooms of the first hotel."}
    doubt = rejected(reason="ambiguous", counter_proposal=counter, counter_plan=["Take the first hotel."])
    ran = await run(doubt, answer(263, {"endpoint": counter, "synthesis_id": "syn-1"}), arguments=(*WANTED, *options))
    assert (ran.code, len(ran.sent)) == (0 if turns == 2 else 1, turns)
    assert "Take the first hotel." in ran.out + ran.err or "--follow-ambiguous" in options
