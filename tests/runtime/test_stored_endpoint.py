"""An endpoint written down and read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.handler import (
    UPSTREAM_ERRORS,
    Composition,
    ExternalService,
    McpServer,
    McpTool,
    OpaqueHandler,
    RegisteredFunction,
)
from bespeak.contract.recipe import Recipe, RecipeStep, Source
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.errors import ConfigError
from bespeak.runtime.additions import EndpointOrigin, read_endpoint, write_endpoint

FUNCTION = RegisteredFunction(function="tests.service.echo", blocking=True)
BOOK = replace(
    make_endpoint("BOOK", "/room/{room_id}", echo, properties={"room_id": {"enum": ["a", None]}}, scopes=("a:b",)),
    handler=FUNCTION,
    errors=(DeclaredError("taken", "The room is taken."),),
    namespace="rooms",
    confirm=True,
    internal=True,
    since="rooms[].updated_at",
)


def test_an_endpoint_survives_the_round_trip() -> None:
    stored, findings = read_endpoint(write_endpoint(BOOK), "BOOK /room/{room_id}")
    assert stored is not None
    assert findings == []
    assert (stored.recipe, stored.origin) == (None, None)
    read = stored.endpoint
    assert project_endpoint(read)["input_schema"]["properties"] == {"room_id": {"enum": ["a", None]}}
    for name in ("method", "path", "errors", "handler", "namespace", "required_scopes", "confirm", "internal", "since"):
        assert getattr(read, name) == getattr(BOOK, name), name
    assert read.semantic == BOOK.semantic


@pytest.mark.parametrize(
    "handler",
    [
        ExternalService(
            url="https://upstream.example/{room_id}",
            method="GET",
            headers={"Authorization": "Bearer ${TOKEN}"},
            query=("page",),
            error_map={"404": "upstream_error"},
            timeout_seconds=2.5,
        ),
        McpTool(mcp=McpServer(tool="book", command="hotel", args=("-x",), env=("KEY",), folder="/srv"), deferred=False),
        McpTool(mcp=McpServer(tool="book", url="https://x.example/mcp", headers={"A": "${B}"}), timeout_seconds=2.5),
        Composition(recipe="book-and-pay"),
    ],
    ids=lambda handler: type(handler).__name__,
)
def test_handlers_without_a_function_are_stored_completely(handler: Any) -> None:
    errors = tuple(DeclaredError(name) for name in UPSTREAM_ERRORS)
    stored, _ = read_endpoint(write_endpoint(replace(BOOK, handler=handler, errors=errors)), "x")
    assert stored is not None
    assert stored.endpoint.handler == handler


def test_recipe_and_origin_of_a_synthesis_are_stored_with_it() -> None:
    room = Source(kind="proposal", value="room_id")
    recipe = Recipe(name="r", steps=(RecipeStep(method="HOLD", path="/room", input={"room": room}),))
    origin = EndpointOrigin(synthesis_id="syn-1", agent_id="a" * 64, expires=2e9)
    text = write_endpoint(replace(BOOK, handler=Composition(recipe="r")), recipe, origin)
    stored, findings = read_endpoint(text, "x")
    assert not findings
    assert stored is not None
    assert (stored.recipe, stored.origin) == (recipe, origin)


def test_a_function_is_stored_by_its_dotted_path() -> None:
    found = replace(BOOK, handler=RegisteredFunction(function="tests.service.echo", target=echo))
    assert '"function":"tests.service.echo"' in write_endpoint(found)


@pytest.mark.parametrize(
    "handler",
    [
        RegisteredFunction(function="tests.service.echo", target=dict),
        RegisteredFunction(function="tests.service.missing"),
        OpaqueHandler(type="registered_function"),
    ],
)
def test_a_handler_that_other_processes_cannot_find_is_refused(handler: Any) -> None:
    with pytest.raises(ConfigError, match="stored"):
        write_endpoint(replace(BOOK, handler=handler))


def test_an_unreadable_endpoint_is_reported() -> None:
    endpoint, findings = read_endpoint('{"endpoint": {"method": "BOOK"}}', "BOOK /room")
    assert endpoint is None
    assert findings
    assert str(findings[0].location) == "BOOK /room"
