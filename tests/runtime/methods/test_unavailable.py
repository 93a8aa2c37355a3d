"""Floor methods without anything behind them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import build

from bespeak.runtime.methods.unavailable import MISSING

VALID: dict[str, dict[str, Any]] = {
    "SUMMARIZE": {"source": "text"},
    "PLAN": {"goal": "rest"},
    "EXECUTE": {"action": "run"},
    "NOTIFY": {"recipient": "r", "content": "c"},
}


@pytest.mark.parametrize("method", MISSING)
def test_a_valid_call_is_a_501_that_names_what_is_missing(method: str) -> None:
    reply = build().send(method, "/", VALID[method])
    assert (reply.status, reply.error["code"], reply.error["missing"]) == (501, "not-implemented", MISSING[method])


@pytest.mark.parametrize("method", MISSING)
def test_its_parameters_are_checked_all_the_same(method: str) -> None:
    assert build().send(method, "/").status == 422
