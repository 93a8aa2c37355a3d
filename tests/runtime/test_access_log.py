"""One log line per answer, if the level is enabled."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

import pytest
from tests.service import build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.runtime.exchange import ACCESS_LOGGER, access_log
from bespeak.state.audit.settings import AuditSettings

pytestmark = pytest.mark.anyio


def request(method: str, path: str) -> Request:
    return Request(method, path, "", {"request-id": "r-1"}, b"", Connection(peer="192.0.2.1:99"))


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, Any]]:
    return [
        (record.getMessage(), vars(record)["particulars"]) for record in caplog.records if record.name == ACCESS_LOGGER
    ]


async def later(context: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {}


@pytest.mark.parametrize("handler", [echo, later])
async def test_an_answer_is_logged_once_it_is_complete(caplog: pytest.LogCaptureFixture, handler: Any) -> None:
    with caplog.at_level(logging.DEBUG):
        bench = build(make_endpoint("QUERY", "/rooms/{room}", handler, properties={"room": {}}))
        answer = bench.dispatcher(request("QUERY", "/rooms/12"))
        if inspect.iscoroutine(answer):
            assert told(caplog) == []
            answer = await answer
    assert isinstance(answer, Response)
    [(message, members)] = told(caplog)
    assert message == "200 QUERY /rooms/{room} by anonymous"
    assert (members["request_id"], members["response_id"]) == ("r-1", answer.header("response-id"))


async def test_a_cancelled_call_is_logged_as_one(caplog: pytest.LogCaptureFixture) -> None:
    started = asyncio.Event()

    async def wait() -> dict[str, Any]:
        started.set()
        await asyncio.Event().wait()
        return {}

    with caplog.at_level(logging.DEBUG):
        bench = build(make_endpoint("QUERY", "/rooms", wait))
        answer = bench.dispatcher(request("QUERY", "/rooms"))
        assert inspect.iscoroutine(answer)
        running = asyncio.create_task(answer)
        await started.wait()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [message for message, _ in told(caplog)] == ["408 QUERY /rooms by anonymous"]
    assert "QUERY /rooms was cancelled before it was answered" in caplog.text


async def test_the_record_of_an_answer_is_named(caplog: pytest.LogCaptureFixture) -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    caplog.set_level(logging.DEBUG)
    async with keeping(make_endpoint("QUERY", "/rooms", echo), document=document) as bench:
        answer = bench.bench.dispatcher(request("QUERY", "/rooms"))
        assert inspect.iscoroutine(answer)
        response = await answer
    [(_, members)] = told(caplog)
    assert members["audit_id"] == response.header("audit-id") is not None


def test_a_disabled_log_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert access_log() == ()


def test_an_invalid_request_is_logged_by_the_dispatcher(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        response = build().dispatcher.malformed(Malformed(400, "invalid-request-line", "hush"), Connection())
    assert response.status == 400
    assert told(caplog) == []
    assert "400 invalid-request-line" in caplog.text
    assert "hush" not in caplog.text
