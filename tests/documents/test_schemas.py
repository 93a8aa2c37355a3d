"""The JSON Schemas of documents: that of /.well-known/ai follows the draft at every level."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.documents.ai.test_document import FLIGHTS

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.schemas import SCHEMAS, load_schema


def is_valid(document: dict[str, Any]) -> bool:
    validator = compile_schema(load_schema("ai"))
    assert isinstance(validator, Validator)
    return validator.is_valid(document)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_compiles(name: str) -> None:
    assert isinstance(compile_schema(load_schema(name)), Validator)


def test_a_complete_document_is_valid() -> None:
    assert is_valid(FLIGHTS)
    assert is_valid({key: FLIGHTS[key] for key in ("aiendpoint", "service", "capabilities")})


@rows(
    "at, value",
    (("aiendpoint",), "1.1"),
    (("more",), 1),
    (("service", "more"), 1),
    (("service", "name"), ""),
    (("service", "name"), "x" * 101),
    (("service", "description"), "x" * 301),
    (("service", "category"), []),
    (("service", "category"), ["ai"]),
    (("service", "category"), ["data", "data"]),
    (("service", "language"), ["zh-Hant"]),
    (("service", "language"), ["fil"]),
    (("capabilities",), []),
    (("capabilities", 0, "id"), "Search"),
    (("capabilities", 0, "id"), "x" * 65),
    (("capabilities", 0, "description"), "x" * 201),
    (("capabilities", 0, "endpoint"), ""),
    (("capabilities", 0, "method"), "HEAD"),
    (("capabilities", 0, "params"), {"from": 1}),
    (("capabilities", 0, "returns"), "x" * 301),
    (("capabilities", 0, "scopes"), []),
    (("auth", "type"), "api_key"),
    (("auth", "docs"), "not an address"),
    (("auth", "secret"), "x"),
    (("token_hints", "compact_mode"), "yes"),
    (("token_hints", "streaming"), True),
    (("rate_limits", "requests_per_minute"), 0),
    (("meta", "last_updated"), "2026-11-15T08:00:00+01:00"),
    (("meta", "spec_url"), "https://flights.example"),
)
def test_document_outside_the_format_is_not_valid(at: tuple[str | int, ...], value: object) -> None:
    def changed(part: Any, rest: tuple[str | int, ...]) -> Any:
        if not rest:
            return value
        if isinstance(part, list):
            return [changed(item, rest[1:]) if index == rest[0] else item for index, item in enumerate(part)]
        return {**part, rest[0]: changed(part.get(rest[0]), rest[1:])}

    assert not is_valid(changed(FLIGHTS, at))
