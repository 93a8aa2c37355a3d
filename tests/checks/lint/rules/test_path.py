from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bespeak.checks.lint.registration import check_endpoint, check_service
from bespeak.checks.lint.rules.path import PathClaims
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies

Check = Callable[..., list[str]]


@pytest.mark.requirement("API-13.2-3")
@pytest.mark.parametrize("path", ["", "room", "/room/", "/a b", "/caf\u00e9"])
def test_a_path_against_the_grammar_is_refused(check: Check, path: str) -> None:
    assert check(path=path) == ["P301"]


@pytest.mark.requirement("API-5.1-3")
@pytest.mark.parametrize("path", ["/book", "/rooms/b-o_o-k", "/order/{room_id}"])
def test_a_method_name_in_the_path_is_refused(check: Check, path: str) -> None:
    assert check(path=path) == ["P302"]


@pytest.mark.parametrize(
    ("path", "rule", "advice"),
    [
        ("/rooms/search", "P302", "Leave out 'search', or name the thing acted on"),
        ("/rooms/<room_id>", "P301", "Write a parameter as {room_id}."),
        ("/rooms/<int:room_id>", "P301", "Write a parameter as {room_id}."),
        ("/rooms/:room_id", "P308", "Write a parameter as {room_id}."),
    ],
)
def test_the_advice_says_what_to_write(room: Endpoint, catalog: Catalog, path: str, rule: str, advice: str) -> None:
    (finding,) = check_endpoint(replace(room, path=path), catalog, Policies())
    assert finding.rule == rule
    assert advice in finding.help


@pytest.mark.parametrize("path", ["/rooms/12:30", "/rooms/:", "/a:b/c:"])
def test_a_colon_may_stand_in_a_literal(check: Check, path: str) -> None:
    assert check(path=path) == []


@pytest.mark.requirement("API-5.2-2", "API-5.3-2")
@pytest.mark.parametrize("path", ["/rooms/x-{room_id}", "/rooms/{+room_id}", "/rooms/{?room_id}", "/rooms/{}"])
def test_a_template_in_any_other_form_is_refused(check: Check, path: str) -> None:
    assert check(path=path) == ["P303"]


@pytest.mark.requirement("API-5.2-4")
def test_a_parameter_that_stands_twice_is_refused(check: Check) -> None:
    assert check(path="/rooms/{room_id}/{room_id}") == ["P304"]


@pytest.mark.requirement("API-5.3-3", "API-5.3-4")
def test_a_template_parameter_that_is_no_input_property_is_refused(check: Check) -> None:
    assert check(path="/rooms/{room_id}") == []
    assert check(path="/rooms/{room_id}/{guest_id}") == ["P305"]


@pytest.mark.requirement("API-5.4-5", "API-5.4-6")
def test_two_templates_that_match_equally_well_are_refused_with_both_places(room: Endpoint) -> None:
    first = replace(room, path="/rooms/{room_id}")
    second = replace(room, path="/{kind}/{room_id}")
    third = replace(room, path="/{kind}/first")
    assert [(endpoint, finding.rule) for endpoint, finding in check_service([first, second, third])] == [
        (third, "P306")
    ]
    ((_, finding),) = check_service([first, third])
    assert "/rooms/{room_id} (room.toml:1)" in finding.message


def test_the_same_template_under_another_method_is_fine(room: Endpoint) -> None:
    endpoints = [replace(room, method=method, path="/rooms/{room_id}") for method in ("BOOK", "CANCEL", "FETCH")]
    assert check_service(endpoints) == []


def test_a_pair_that_is_declared_twice_is_refused(room: Endpoint) -> None:
    twin = replace(room)
    assert [(endpoint is twin, finding.rule) for endpoint, finding in check_service([room, twin])] == [(True, "P307")]


def test_an_endpoint_without_a_usable_path_claims_nothing(room: Endpoint) -> None:
    assert PathClaims().claim(replace(room, path="room")) is None


def test_ten_thousand_templates_are_told_apart(room: Endpoint) -> None:
    endpoints = [replace(room, path=f"/{{kind}}/n{number % 100}/{{id}}/m{number}") for number in range(10_000)]
    endpoints.append(replace(room, path="/{kind}/n7/x/{other}"))
    ((endpoint, finding),) = check_service(endpoints)
    assert endpoint is endpoints[-1]
    assert finding.rule == "P306"
