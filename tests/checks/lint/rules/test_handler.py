from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows

from bespeak.checks.lint.registration import check_endpoint
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe

Check = Callable[..., list[str]]

ERRORS = tuple(DeclaredError(name) for name in (*UPSTREAM_ERRORS, "room_unavailable"))


def upstream(**changes: Any) -> ExternalService:
    service = ExternalService(url="https://upstream.example/x", method="POST", error_map={"409": "room_unavailable"})
    return replace(service, **changes)


PLAIN = (
    "http://upstream.example/x",
    "ftp://x.example",
    "upstream.example",
    "https://",
    "https://[::1",
    "",
    "https:///x",
)
FUNCTIONS = ("book_room", "rooms:book_room", "rooms.", ".rooms", "rooms.book room", "a..b", "")


@pytest.mark.requirement("API-12.2-1", "API-12.3-1", "API-12.3-2", "API-12.3-3", "API-12.3-8")
@rows(
    "handler, expected",
    *((RegisteredFunction(function=function), ["H711"]) for function in FUNCTIONS),
    (RegisteredFunction(function="<lambda>", target=print), []),  # a function object needs no path
    (upstream(), []),
    *((upstream(url=url), ["H712"]) for url in PLAIN),
    *((upstream(method=method), ["H713"]) for method in ("BOOK", "post", "", "TRACE")),
    (upstream(error_map={"404": "room_not_found"}), ["H715"]),
    *((upstream(error_map={code: "room_unavailable"}), ["H715"]) for code in ("4xx", "0404", "600", "", "four")),
    *((upstream(timeout_seconds=one), ["H716"]) for one in (0, -1, float("inf"), float("nan"), True, "30")),
)
def test_handler_names_a_function_or_a_usable_upstream(check: Check, handler: Any, expected: list[str]) -> None:
    assert check(handler=handler, errors=ERRORS) == expected


@pytest.mark.requirement("API-6.3-6", "API-12.3-12")
@pytest.mark.parametrize("missing", UPSTREAM_ERRORS)
def test_every_upstream_failure_is_a_declared_error(check: Check, missing: str) -> None:
    errors = tuple(error for error in ERRORS if error.name != missing)
    assert check(handler=upstream(), errors=errors) == ["H714"]


@pytest.mark.requirement("API-12.3-7", "API-6.3-5", "API-12.1-2", "API-12.1-3")
def test_service_without_an_error_map_is_a_warning_and_a_composition_declares_its_failure(
    room: Endpoint, catalog: Catalog
) -> None:
    endpoint = replace(room, handler=upstream(error_map={}), errors=ERRORS)
    (finding,) = check_endpoint(endpoint, catalog, Policies())
    assert (finding.rule, finding.severity) == ("H717", "warning")
    endpoint = replace(room, handler=Composition(recipe="audit"))
    assert [finding.rule for finding in check_endpoint(endpoint, catalog, Policies())] == ["H718", "H719"]
    complete = replace(endpoint, errors=(DeclaredError("composition_failed"),))
    assert check_endpoint(complete, catalog, Policies(), [Recipe(name="audit", steps=())]) == []
