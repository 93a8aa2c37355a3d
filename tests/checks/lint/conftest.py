"""An endpoint without fault, to be spoilt in one place by each test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.text.source.tree import Location

Check = Callable[..., list[str]]

ROOM = Endpoint(
    method="BOOK",
    path="/room",
    description="Books a room.",
    semantic=Semantic(
        intent="Reserve a room for the guest.",
        actor="agent",
        outcome="A reservation exists.",
        capability="transaction",
        confidence=0.85,
        impact="irreversible",
        is_idempotent=False,
    ),
    input_schema={
        "type": "object",
        "properties": {"room_id": {"type": "string"}},
        "required": ["room_id"],
        "additionalProperties": False,
    },
    output_schema={"type": "object", "additionalProperties": True},
    errors=(DeclaredError("room_unavailable"),),
    handler=RegisteredFunction(function="rooms.handlers.book_room"),
    required_scopes=("booking:room",),
    location=Location("room.toml", 1),
)


@pytest.fixture
def room() -> Endpoint:
    return ROOM


@pytest.fixture
def catalog() -> Catalog:
    return load_bundled()


@pytest.fixture
def check(catalog: Catalog) -> Check:
    """The rule ids found in the room endpoint with some fields, or fields of its semantic block, changed."""

    def found(
        *, policy: MethodPolicy | None = None, semantic: dict[str, Any] | None = None, **changes: Any
    ) -> list[str]:
        endpoint = replace(ROOM, **changes)
        if semantic:
            endpoint = replace(endpoint, semantic=replace(endpoint.semantic, **semantic))
        policies = Policies(methods=policy or MethodPolicy())
        return [finding.rule for finding in check_endpoint(endpoint, catalog, policies)]

    return found
