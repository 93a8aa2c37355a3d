"""Methods that keep state: not without a store, not for nobody."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT, build
from tests.stateful import keeping

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import invalid, read_time, too_large

VALID: dict[str, dict[str, Any]] = {
    "ESCALATE": {"task_id": "t", "reason": "scope_limit", "context": {}},
    "CONFIRM": {"target_id": "t", "status": "accepted"},
    "SUSPEND": {"session_id": "s"},
}


@pytest.mark.parametrize("method", VALID)
def test_without_a_store_a_valid_call_is_a_501_that_says_so(method: str) -> None:
    for headers in ({}, {"agent-id": AGENT}):
        reply = build().send(method, "/", VALID[method], **headers)
        assert (reply.status, reply.error["code"]) == (501, "not-implemented")
        assert reply.error["missing"] == "a store to keep state in"


@pytest.mark.anyio
@pytest.mark.parametrize("method", VALID)
async def test_an_anonymous_caller_gets_262(method: str) -> None:
    async with keeping() as bench:
        reply = await bench.send(method, "/", VALID[method], agent=None)
        assert (reply.status, reply.error["type"]) == (262, "credentials-missing")


@pytest.mark.parametrize("method", VALID)
def test_parameters_are_checked_first(method: str) -> None:
    assert build().send(method, "/").status == 422


def test_an_invalid_input_names_its_member() -> None:
    refused = invalid("resume_by", "is over.")
    assert (refused.status, refused.code, refused.message) == (422, "invalid-resume-by", "`resume_by` is over.")
    refused = too_large("context", 1024)
    assert (refused.status, refused.code, refused.details["field"]) == (413, "context-too-large", "/context")


def test_a_time_is_read_or_refused_by_its_member() -> None:
    assert read_time("deadline", "1970-01-01T00:01:00Z") == 60.0
    refused = read_time("deadline", "soon")
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code, refused.details) == (422, "invalid-deadline", {"field": "/deadline"})
