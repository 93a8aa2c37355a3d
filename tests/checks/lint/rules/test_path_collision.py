from __future__ import annotations

from dataclasses import replace

import pytest

from bespeak.checks.lint.registration import check_service
from bespeak.checks.lint.rules.path import PathClaims
from bespeak.contract.endpoint import Endpoint


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


def test_collision_among_ten_thousand_templates_is_found(room: Endpoint) -> None:
    endpoints = [replace(room, path=f"/{{kind}}/n{number % 100}/{{id}}/m{number}") for number in range(10_000)]
    endpoints.append(replace(room, path="/{kind}/n7/x/{other}"))
    ((endpoint, finding),) = check_service(endpoints)
    assert endpoint is endpoints[-1]
    assert finding.rule == "P306"
