"""Where a redirect sends a request."""

from __future__ import annotations

import pytest

from bespeak.contract.policy import Redirect
from bespeak.runtime.route_table import Redirects


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
