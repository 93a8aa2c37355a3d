"""Which endpoint a path means."""

from __future__ import annotations

import pytest

from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.runtime.route_table import Router


def router(*pairs: tuple[str, str]) -> Router[str]:
    made: Router[str] = Router()
    for method, path in pairs:
        template = parse_template(path)
        assert isinstance(template, Template)
        made.add(method, template, f"{method} {path}")
    return made


@pytest.mark.requirement("API-5.4-1")
def test_a_literal_path_wins_over_a_template() -> None:
    found = router(("QUERY", "/rooms/{id}"), ("QUERY", "/rooms/suites")).find("QUERY", "/rooms/suites")
    assert found == ("QUERY /rooms/suites", None)


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


def test_captured_values_are_percent_decoded() -> None:
    assert router(("FETCH", "/files/{name}")).find("FETCH", "/files/a%2Fb%20c") == (
        "FETCH /files/{name}",
        {"name": "a/b c"},
    )


def test_an_empty_segment_fills_no_parameter() -> None:
    assert router(("FETCH", "/files/{name}/parts")).find("FETCH", "/files//parts") is None


def test_methods_of_a_path_come_from_literals_and_templates() -> None:
    made = router(("QUERY", "/rooms/suites"), ("FETCH", "/rooms/{id}"), ("BOOK", "/hall"))
    assert made.methods_at("/rooms/suites") == ["FETCH", "QUERY"]
    assert made.methods_at("/nothing") == []


def test_a_later_endpoint_on_the_same_pair_takes_the_place_of_the_earlier_one() -> None:
    made: Router[str] = Router()
    template = parse_template("/methods")
    assert isinstance(template, Template)
    made.add("DISCOVER", template, "built-in")
    made.add("DISCOVER", template, "own")
    assert made.find("DISCOVER", "/methods") == ("own", None)
