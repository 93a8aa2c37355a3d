from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

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


@pytest.mark.requirement("API-12.2-1")
@pytest.mark.parametrize(
    "function", ["book_room", "rooms:book_room", "rooms.", ".rooms", "rooms.book room", "a..b", ""]
)
def test_a_function_is_one_dotted_path(check: Check, function: str) -> None:
    assert check(handler=RegisteredFunction(function=function)) == ["H711"]


def test_function_object_needs_no_dotted_path(check: Check) -> None:
    assert check(handler=RegisteredFunction(function="<lambda>", target=print)) == []


def test_a_complete_external_service_is_fine(check: Check) -> None:
    assert check(handler=upstream(), errors=ERRORS) == []


@pytest.mark.requirement("API-12.3-1", "API-12.3-2")
@pytest.mark.parametrize(
    "url",
    ["http://upstream.example/x", "ftp://x.example", "upstream.example", "https://", "https://[::1", "", "https:///x"],
)
def test_an_upstream_that_is_not_https_is_refused(check: Check, url: str) -> None:
    assert check(handler=upstream(url=url), errors=ERRORS) == ["H712"]


@pytest.mark.requirement("API-12.3-3")
@pytest.mark.parametrize("method", ["BOOK", "post", "", "TRACE"])
def test_an_upstream_method_is_one_of_seven(check: Check, method: str) -> None:
    assert check(handler=upstream(method=method), errors=ERRORS) == ["H713"]


@pytest.mark.requirement("API-6.3-6", "API-12.3-12")
@pytest.mark.parametrize("missing", UPSTREAM_ERRORS)
def test_every_upstream_failure_is_a_declared_error(check: Check, missing: str) -> None:
    errors = tuple(error for error in ERRORS if error.name != missing)
    assert check(handler=upstream(), errors=errors) == ["H714"]


@pytest.mark.requirement("API-12.3-8")
def test_an_error_map_leads_to_declared_errors(check: Check) -> None:
    assert check(handler=upstream(error_map={"404": "room_not_found"}), errors=ERRORS) == ["H715"]


@pytest.mark.parametrize("code", ["4xx", "0404", "600", "", "four"])
def test_an_error_map_starts_from_status_codes(check: Check, code: str) -> None:
    assert check(handler=upstream(error_map={code: "room_unavailable"}), errors=ERRORS) == ["H715"]


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), True, "30"])
def test_a_timeout_is_a_positive_number(check: Check, timeout: Any) -> None:
    assert check(handler=upstream(timeout_seconds=timeout), errors=ERRORS) == ["H716"]


@pytest.mark.requirement("API-12.3-7")
def test_an_external_service_without_an_error_map_is_a_warning(room: Endpoint, catalog: Catalog) -> None:
    endpoint = replace(room, handler=upstream(error_map={}), errors=ERRORS)
    (finding,) = check_endpoint(endpoint, catalog, Policies())
    assert (finding.rule, finding.severity) == ("H717", "warning")


@pytest.mark.requirement("API-6.3-5", "API-12.1-2", "API-12.1-3")
def test_a_composition_declares_composition_failed_and_a_known_recipe(room: Endpoint, catalog: Catalog) -> None:
    endpoint = replace(room, handler=Composition(recipe="audit"))
    assert [finding.rule for finding in check_endpoint(endpoint, catalog, Policies())] == ["H718", "H719"]
    complete = replace(endpoint, errors=(DeclaredError("composition_failed"),))
    assert check_endpoint(complete, catalog, Policies(), [Recipe(name="audit", steps=())]) == []
