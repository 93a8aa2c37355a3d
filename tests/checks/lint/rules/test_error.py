from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, of_endpoint

from bespeak.contract.endpoint import DeclaredError

Check = Callable[..., list[str]]


@rows(
    "errors, expected",
    *(((DeclaredError(name),), ["J605"]) for name in ("", "room unavailable", "9lives", "a\n", "x" * 65, "naïve")),
    ((DeclaredError("gone"), DeclaredError("gone", "again")), ["J606"]),
    ((), []),
)
def test_errors_are_identifiers_declared_once(check: Check, errors: Any, expected: list[str]) -> None:
    assert check(errors=errors) == expected


def named(*names: Any) -> list[dict[str, Any]]:
    return [{"name": name, "description": "It happened."} for name in names]


GENERIC = ("error", "failure", "Unknown", "exception", "err", "bad_request", "unknown_error", "500", "error_1", "E1001")
TELLING = ("room_unavailable", "invalid_datetime", "no_results", "upstream_error", "timeout")


@pytest.mark.requirement("AGIS-7-5", "AGIS-7-7")
@rows(
    "errors, expected",
    *((value, ["J622"]) for value in (GONE, None)),
    ([], []),
    *((named(name), ["J635"]) for name in GENERIC),
    *((named(name), []) for name in TELLING),
    (named("room_taken", "room_taken"), ["J636"]),
    *((value, ["D121"]) for value in ("room_taken", 5, {"room_taken": "It is taken."})),  # left to the reader
)
def test_errors_are_given_each_once_with_names_that_tell_what_happened(errors: Any, expected: list[str]) -> None:
    assert of_endpoint(errors=errors) == expected


@pytest.mark.requirement("AGIS-7-5")
@pytest.mark.parametrize("error", [{"description": "It is taken."}, {"name": ""}, {"room_taken": "It is taken."}])
def test_an_error_has_a_name(error: Any) -> None:
    found = advice("J634", document(endpoint(errors=[error])))
    assert (found.severity, found.pointer) == ("error", "/endpoints/0/errors/0")


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
