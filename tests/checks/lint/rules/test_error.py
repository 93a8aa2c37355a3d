from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, of_endpoint

from bespeak.contract.endpoint import DeclaredError

Check = Callable[..., list[str]]


@pytest.mark.parametrize("name", ["", "room unavailable", "9lives", "a\n", "x" * 65, "naïve"])
def test_an_error_has_a_name_that_is_an_identifier(check: Check, name: str) -> None:
    assert check(errors=(DeclaredError(name),)) == ["J605"]


def test_an_error_is_declared_once(check: Check) -> None:
    assert check(errors=(DeclaredError("gone"), DeclaredError("gone", "again"))) == ["J606"]


def test_an_endpoint_may_have_no_errors(check: Check) -> None:
    assert check(errors=()) == []


def named(*names: Any) -> list[dict[str, Any]]:
    return [{"name": name, "description": "It happened."} for name in names]


@pytest.mark.requirement("AGIS-7-5")
@pytest.mark.parametrize("value", [GONE, None])
def test_errors_are_required(value: Any) -> None:
    assert of_endpoint(errors=value) == ["J622"]


def test_an_endpoint_may_have_none() -> None:
    assert of_endpoint(errors=[]) == []


@pytest.mark.requirement("AGIS-7-5")
@pytest.mark.parametrize("error", [{"description": "It is taken."}, {"name": ""}, {"room_taken": "It is taken."}])
def test_an_error_has_a_name(error: Any) -> None:
    found = advice("J634", document(endpoint(errors=[error])))
    assert (found.severity, found.pointer) == ("error", "/endpoints/0/errors/0")


@pytest.mark.requirement("AGIS-7-7")
@pytest.mark.parametrize(
    "name",
    ["error", "failure", "Unknown", "exception", "err", "bad_request", "unknown_error", "500", "error_1", "E1001"],
)
def test_a_name_that_fits_any_failure_is_refused(name: str) -> None:
    assert of_endpoint(errors=named(name)) == ["J635"]


@pytest.mark.requirement("AGIS-7-7")
@pytest.mark.parametrize("name", ["room_unavailable", "invalid_datetime", "no_results", "upstream_error", "timeout"])
def test_a_name_that_says_what_happened_is_right(name: str) -> None:
    assert of_endpoint(errors=named(name)) == []


def test_an_error_is_listed_once() -> None:
    assert of_endpoint(errors=named("room_taken", "room_taken")) == ["J636"]


@pytest.mark.parametrize(
    ("name", "meant"), [("RoomTaken", "room_taken"), ("ROOM_TAKEN", "room_taken"), ("room taken", "room_taken")]
)
def test_a_name_is_in_snake_case(name: str, meant: str) -> None:
    found = advice("J637", document(endpoint(errors=named(name))))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, meant)


@pytest.mark.requirement("AGIS-7-6")
def test_descriptions_are_an_advice_and_given_once() -> None:
    found = advice("J638", document(endpoint(errors=["room_taken", "invalid_datetime"])))
    assert found.severity == "info"


@pytest.mark.parametrize("value", ["room_taken", 5, {"room_taken": "It is taken."}])
def test_invalid_list_is_left_to_the_reader(value: Any) -> None:
    assert of_endpoint(errors=value) == ["D121"]
