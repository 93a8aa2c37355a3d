"""Task and session of a body in the draft's envelope."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import pytest
from tests.service import build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.protocol.exchange.messages import Context

SESSION = secrets.token_urlsafe(16)


def told(context: Context) -> dict[str, Any]:
    return {"task": context.task_id, "session": context.session_id}


BOOK = make_endpoint("BOOK", "/room", told)
OWN = make_endpoint("EXECUTE", "/job", told, properties={"parameters": {"type": "object"}})


@pytest.mark.requirement("CORE-5.2-1")
def test_ids_of_the_envelope_are_used_and_echoed() -> None:
    body = {"method": "BOOK", "task_id": "t-1", "session_id": SESSION, "parameters": {}}
    reply = build(BOOK).send("BOOK", "/room", body)
    assert (reply.json, reply.header("Task-ID")) == ({"task": "t-1", "session": SESSION}, "t-1")


@pytest.mark.requirement("CORE-5.2-2", "CORE-9-3")
def test_headers_win_over_the_envelope_and_a_difference_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reply = build(BOOK).send("BOOK", "/room", {"task_id": "t-1", "parameters": {}}, task_id="t-2")
        assert (reply.json["task"], reply.header("Task-ID")) == ("t-2", "t-2")
        assert "task_id in a body differs" in caplog.text
        assert "t-1" not in caplog.text
        caplog.clear()
        assert build(BOOK).send("BOOK", "/room", {"task_id": "t-2", "parameters": {}}, task_id="t-2").status == 200
        assert "differs" not in caplog.text


@pytest.mark.parametrize("body", [{"task_id": 5}, {"task_id": "a\r\nEvil: y"}, {"task_id": ""}, {"session_id": "a b"}])
def test_an_id_that_no_header_can_carry_is_400(body: dict[str, Any]) -> None:
    reply = build(BOOK).send("BOOK", "/room", {**body, "parameters": {}})
    assert (reply.status, reply.error["field"]) == (400, f"/{next(iter(body))}")
    assert reply.header("Evil") is None


def test_an_empty_id_and_input_of_an_endpoint_of_its_own_are_left_alone() -> None:
    assert build(BOOK).send("BOOK", "/room", {"task_id": None, "parameters": {}}).json["task"] is None
    flat = make_endpoint("BOOK", "/room", told, properties={"task_id": {"type": "string"}})
    assert build(flat).send("BOOK", "/room", {"task_id": "mine"}).json["task"] is None
    assert build(OWN).send("EXECUTE", "/job", {"parameters": {}}).json["task"] is None


def test_headers_shared_with_other_requests_are_not_changed() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    headers = {"agent-id": "a" * 64}
    bench.send("BOOK", "/room", {"task_id": "t-1", "parameters": {}}, **headers)
    assert headers == {"agent-id": "a" * 64}


@pytest.mark.anyio
async def test_a_floor_method_finds_its_parameters_in_the_envelope() -> None:
    async with keeping() as bench:
        body = {
            "method": "ESCALATE",
            "task_id": "t-1",
            "parameters": {"reason": "ethical_flag"},
            "context": {"n": 1.10},
        }
        reply = await bench.send("ESCALATE", "/", body)
        assert (reply.status, reply.json["task_id"]) == (202, "t-1")


@pytest.mark.anyio
async def test_a_paused_task_and_a_suspended_session_are_recognized_in_the_envelope() -> None:
    async with keeping(BOOK) as bench:
        await bench.send("ESCALATE", "/", {"task_id": "t-1", "reason": "ethical_flag", "context": {}})
        assert (await bench.send("BOOK", "/room", {"task_id": "t-1", "parameters": {}})).error["code"] == "task-paused"
        body = {"session_id": SESSION, "parameters": {}}
        assert (await bench.send("BOOK", "/room", body)).status == 200
        assert (await bench.send("SUSPEND", "/", body)).status == 200
        assert (await bench.send("BOOK", "/room", body)).error["code"] == "session-suspended"
