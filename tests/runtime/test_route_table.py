"""Targets of redirects, and endpoints that are stored and read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.handler import (
    UPSTREAM_ERRORS,
    Composition,
    ExternalService,
    McpServer,
    McpTool,
    OpaqueHandler,
    RegisteredFunction,
)
from bespeak.contract.policy import Redirect
from bespeak.contract.recipe import Recipe, RecipeStep, Source
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.errors import ConfigError
from bespeak.runtime.additions import EndpointOrigin, read_endpoint, write_endpoint
from bespeak.runtime.route_table import Redirects, Router


def redirects(*entries: str) -> Redirects:
    """Make redirects of lines such as `BOOK /room -> BUY /stay`, in which paths may be missing."""
    made = []
    for entry in entries:
        (method, *path), (target, *to_path) = (side.split() for side in entry.split(" -> "))
        made.append(
            Redirect(
                from_method=method,
                from_path=next(iter(path), None),
                to_method=target,
                to_path=next(iter(to_path), None),
            )
        )
    return Redirects(made)


@pytest.mark.requirement("API-9.2-5")
@rows(
    "entries, request_, target",
    # A missing from_path matches any path, and a missing to_path keeps it.
    (["BOOK -> RESERVE"], ("BOOK", "/anything"), ("RESERVE", "/anything")),
    (["BOOK -> RESERVE"], ("FETCH", "/anything"), ("FETCH", "/anything")),
    # An entry for the path takes precedence over one for the method.
    (["BOOK -> RESERVE", "BOOK /room -> BUY /stay"], ("BOOK", "/room"), ("BUY", "/stay")),
    (["BOOK -> RESERVE", "BOOK /room -> BUY /stay"], ("BOOK", "/hall"), ("RESERVE", "/hall")),
    # A chain is followed to its end; a circle, and a path that grows, end.
    (["BUY -> BOOK", "BOOK -> RESERVE"], ("BUY", "/room"), ("RESERVE", "/room")),
    (["BUY -> BOOK", "BOOK -> BUY"], ("BUY", "/room"), ("BOOK", "/room")),
    (["BOOK /{a} -> BOOK /x/{a}"], ("BOOK", "/y"), ("BOOK", "/x/y")),
    # A template matches, and its values go along.
    (["RESERVE /rooms/{id} -> BOOK /stays/{id}"], ("RESERVE", "/rooms/a%2Fb"), ("BOOK", "/stays/a%2Fb")),
    (["RESERVE /rooms/{id} -> BOOK /stays/{id}"], ("RESERVE", "/halls/7"), ("RESERVE", "/halls/7")),
    (["GRAB /rooms/{id} -> BOOK"], ("GRAB", "/rooms/7"), ("BOOK", "/rooms/7")),
)
def test_a_redirect_is_followed(entries: list[str], request_: tuple[str, str], target: tuple[str, str]) -> None:
    assert redirects(*entries).follow(*request_) == target


def test_the_redirects_of_a_path_are_named_for_a_405() -> None:
    made = redirects("BOOK /room -> RESERVE", "BUY -> PURCHASE", "GRAB /rooms/{id} -> BOOK")
    assert made.for_path("/room") == {"BOOK": "RESERVE", "BUY": "PURCHASE"}
    assert made.for_path("/hall") == {"BUY": "PURCHASE"}
    assert made.for_path("/rooms/7") == {"BUY": "PURCHASE", "GRAB": "BOOK"}


def router(*pairs: tuple[str, str]) -> Router[str]:
    made: Router[str] = Router()
    for method, path in pairs:
        template = parse_template(path)
        assert isinstance(template, Template)
        made.add(method, template, f"{method} {path}")
    return made


@pytest.mark.requirement("API-5.4-1")
def test_literals_win_over_templates_and_captured_values_are_decoded() -> None:
    found = router(("QUERY", "/rooms/{id}"), ("QUERY", "/rooms/suites")).find("QUERY", "/rooms/suites")
    assert found == ("QUERY /rooms/suites", None)
    found = router(("FETCH", "/files/{name}")).find("FETCH", "/files/a%2Fb%20c")
    assert found == ("FETCH /files/{name}", {"name": "a/b c"})
    assert router(("FETCH", "/files/{name}/parts")).find("FETCH", "/files//parts") is None
    made = router(("QUERY", "/rooms/suites"), ("FETCH", "/rooms/{id}"), ("BOOK", "/hall"))
    assert made.methods_at("/rooms/suites") == ["FETCH", "QUERY"]
    assert made.methods_at("/nothing") == []


@pytest.mark.requirement("API-5.4-2")
def test_a_template_matches_by_literals_and_captures_the_rest() -> None:
    made = router(("FETCH", "/orders/{order_id}/lines/{line_id}"))
    assert made.find("FETCH", "/orders/7/lines/2") == (
        "FETCH /orders/{order_id}/lines/{line_id}",
        {"order_id": "7", "line_id": "2"},
    )
    assert made.find("FETCH", "/orders/7/lines") is None
    assert made.find("FETCH", "/orders/7/other/2") is None


@pytest.mark.requirement("API-5.4-4")
def test_the_template_with_the_fewest_parameters_is_taken() -> None:
    made = router(("FETCH", "/x/{b}/{c}"), ("FETCH", "/x/{b}/c"), ("FETCH", "/{a}/y/z"), ("FETCH", "/{a}/{b}/{c}"))
    assert made.find("FETCH", "/x/y/c") == ("FETCH /x/{b}/c", {"b": "y"})
    # A parameter that comes first counts no more than one that comes later.
    assert made.find("FETCH", "/x/y/z") == ("FETCH /{a}/y/z", {"a": "x"})
    assert made.find("FETCH", "/q/y/w") == ("FETCH /{a}/{b}/{c}", {"a": "q", "b": "y", "c": "w"})


def test_a_later_endpoint_on_the_same_pair_takes_the_place_of_the_earlier_one() -> None:
    made: Router[str] = Router()
    template = parse_template("/methods")
    assert isinstance(template, Template)
    made.add("DISCOVER", template, "built-in")
    made.add("DISCOVER", template, "own")
    assert made.find("DISCOVER", "/methods") == ("own", None)


FUNCTION = RegisteredFunction(function="tests.service.echo", inline=True)
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


@rows(
    "handler",
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
    ids=lambda handler: type(handler).__name__,
)
def test_handlers_without_a_function_are_stored_completely(handler: Any) -> None:
    errors = tuple(DeclaredError(name) for name in UPSTREAM_ERRORS)
    stored, _ = read_endpoint(write_endpoint(replace(BOOK, handler=handler, errors=errors)), "x")
    assert stored.endpoint.handler == handler


def test_recipe_and_origin_of_a_synthesis_are_stored_with_it() -> None:
    room = Source(kind="proposal", value="room_id")
    recipe = Recipe(name="r", steps=(RecipeStep(method="HOLD", path="/room", input={"room": room}),))
    origin = EndpointOrigin(synthesis_id="syn-1", agent_id="a" * 64, expires=2e9)
    text = write_endpoint(replace(BOOK, handler=Composition(recipe="r")), recipe, origin)
    stored, findings = read_endpoint(text, "x")
    assert not findings
    assert (stored.recipe, stored.origin) == (recipe, origin)


def test_functions_are_stored_by_dotted_path_and_unreadable_endpoints_reported() -> None:
    found = replace(BOOK, handler=RegisteredFunction(function="tests.service.echo", target=echo))
    assert '"function":"tests.service.echo"' in write_endpoint(found)
    endpoint, findings = read_endpoint('{"endpoint": {"method": "BOOK"}}', "BOOK /room")
    assert endpoint is None
    assert findings
    assert str(findings[0].location) == "BOOK /room"


@rows(
    "handler",
    RegisteredFunction(function="tests.service.echo", target=dict),
    RegisteredFunction(function="tests.service.missing"),
    OpaqueHandler(type="registered_function"),
)
def test_a_handler_that_other_processes_cannot_find_is_refused(handler: Any) -> None:
    with pytest.raises(ConfigError, match="stored"):
        write_endpoint(replace(BOOK, handler=handler))
