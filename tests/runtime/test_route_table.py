"""Where a redirect sends a request."""

from __future__ import annotations

import pytest

from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.policy import Redirect
from bespeak.runtime.route_table import Redirects, Router


@pytest.mark.requirement("API-9.2-5")
def test_a_missing_from_path_matches_any_and_a_missing_to_path_keeps_it() -> None:
    redirects = Redirects([Redirect(from_method="BOOK", to_method="RESERVE")])
    assert redirects.follow("BOOK", "/anything") == ("RESERVE", "/anything")
    assert redirects.follow("FETCH", "/anything") == ("FETCH", "/anything")


def test_an_entry_for_the_path_takes_precedence_over_one_for_the_method() -> None:
    redirects = Redirects(
        [
            Redirect(from_method="BOOK", to_method="RESERVE"),
            Redirect(from_method="BOOK", from_path="/room", to_method="BUY", to_path="/stay"),
        ]
    )
    assert redirects.follow("BOOK", "/room") == ("BUY", "/stay")
    assert redirects.follow("BOOK", "/hall") == ("RESERVE", "/hall")


def test_a_chain_is_followed_to_its_end() -> None:
    redirects = Redirects(
        [Redirect(from_method="BUY", to_method="BOOK"), Redirect(from_method="BOOK", to_method="RESERVE")]
    )
    assert redirects.follow("BUY", "/room") == ("RESERVE", "/room")


def test_a_circle_ends() -> None:
    redirects = Redirects(
        [Redirect(from_method="BUY", to_method="BOOK"), Redirect(from_method="BOOK", to_method="BUY")]
    )
    assert redirects.follow("BUY", "/room") == ("BOOK", "/room")


def test_the_redirects_of_a_path_are_named_for_a_405() -> None:
    redirects = Redirects(
        [
            Redirect(from_method="BOOK", from_path="/room", to_method="RESERVE"),
            Redirect(from_method="BUY", to_method="PURCHASE"),
        ]
    )
    assert redirects.for_path("/room") == {"BOOK": "RESERVE", "BUY": "PURCHASE"}
    assert redirects.for_path("/hall") == {"BUY": "PURCHASE"}


def test_a_template_matches_and_its_values_go_along() -> None:
    redirects = Redirects(
        [
            Redirect(from_method="RESERVE", from_path="/rooms/{room_id}", to_method="BOOK", to_path="/stays/{room_id}"),
            Redirect(from_method="GRAB", from_path="/rooms/{room_id}", to_method="BOOK"),
        ]
    )
    assert redirects.follow("RESERVE", "/rooms/a%2Fb") == ("BOOK", "/stays/a%2Fb")
    assert redirects.follow("GRAB", "/rooms/7") == ("BOOK", "/rooms/7")
    assert redirects.follow("RESERVE", "/halls/7") == ("RESERVE", "/halls/7")
    assert redirects.for_path("/rooms/7") == {"GRAB": "BOOK", "RESERVE": "BOOK"}


def test_a_redirect_that_grows_its_path_ends() -> None:
    redirects = Redirects([Redirect(from_method="BOOK", from_path="/{a}", to_method="BOOK", to_path="/x/{a}")])
    assert redirects.follow("BOOK", "/y") == ("BOOK", "/x/y")


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
