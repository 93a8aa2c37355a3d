"""Outcome of a call to an upstream: a valid output, or a refusal that says whether the call took effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.bindings.upstream_outcome import OUTPUT_INVALID, UpstreamOutcome


def outcome(impact: str = "irreversible", *, idempotent: bool = False, trusts: bool = False) -> UpstreamOutcome:
    made = make_endpoint("BOOK", "/room", echo)
    semantic = replace(made.semantic, impact=impact, is_idempotent=idempotent)
    schema: dict[str, Any] = {"type": "object", "required": ["room"]}
    output = compile_schema(schema)
    assert isinstance(output, Validator)
    return UpstreamOutcome(replace(made, semantic=semantic), output, trusts=trusts)


def test_valid_output_is_returned_as_it_is() -> None:
    assert outcome().check({"room": 1}, "It answered") == {"room": 1}


def test_invalid_output_is_final_or_trusted() -> None:
    found = outcome().check({}, "The upstream answered 200", 200)
    assert isinstance(found, Refused)
    assert (found.status, found.code, found.details["details"]["upstream_status"]) == (422, OUTPUT_INVALID, 200)
    assert isinstance(outcome(trusts=True).check({}, "The upstream answered 200"), Answer)


@pytest.mark.parametrize(
    ("impact", "idempotent", "said"),
    [
        ("irreversible", False, "do not repeat it without the same Idempotency-Key"),
        ("irreversible", True, "it is idempotent and may be repeated"),
        ("informational", True, ""),
    ],
)
def test_caller_is_told_whether_the_call_may_be_repeated(impact: str, idempotent: bool, said: str) -> None:
    found = outcome(impact, idempotent=idempotent).failed("upstream_timeout", "Late.", took_effect=True)
    assert said in found.message
    assert ("effect" in found.details.get("details", {})) == bool(said)
