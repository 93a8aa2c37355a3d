"""Small descriptions for tests, and functions that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.openapi.description import Description, Operation
from bespeak.documents.openapi.reader import read_description
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic

OK: dict[str, Any] = {"200": {"description": "Good."}}


def document(paths: Mapping[str, Any], version: str = "3.0.3", **parts: Any) -> dict[str, Any]:
    """Build a description with a title and a server."""
    if version == "2.0":
        return {"swagger": version, "info": {"title": "Rooms"}, "host": "rooms.example", "paths": paths, **parts}
    servers = [{"url": "https://rooms.example"}]
    return {"openapi": version, "info": {"title": "Rooms", "version": "1"}, "servers": servers, "paths": paths, **parts}


def read(data: Mapping[str, Any], source: str = "api.json", **options: Any) -> tuple[Description, list[Diagnostic]]:
    """Read a valid description and return its findings."""
    made, found = read_description(json.dumps(data), source, **options)
    assert made is not None, found
    return made, found


def read_operation(
    operation: Mapping[str, Any], version: str = "3.0.3", *, path: str = "/room", **parts: Any
) -> tuple[Operation, list[Diagnostic]]:
    """Read one POST operation and return its findings."""
    made, found = read(document({path: {"post": {"responses": OK, **operation}}}, version, **parts))
    return made.operations[0], found


def read_schema(
    schema: Any, version: str = "3.0.3", *, direction: str = "input", schemas: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Read a schema as the body of a request or a response and return its findings."""
    content = {"content": {"application/json": {"schema": schema}}}
    operation: dict[str, Any] = {"requestBody": content}
    if direction == "output":
        operation = {"responses": {"200": {"description": "Good.", **content}}}
    made, found = read_operation(operation, version, components={"schemas": schemas or {}})
    result = made.body.schema if direction == "input" and made.body is not None else made.answers[0].schema
    assert result is not None
    return dict(result), found


def rules(found: list[Diagnostic]) -> list[str]:
    """Return the rules of findings, in order."""
    return [finding.rule for finding in found]


def compiled(schema: Mapping[str, Any]) -> Validator:
    """Compile a schema that must be usable."""
    made = compile_schema(schema)
    assert not isinstance(made, Fault), (made, schema)
    return made
