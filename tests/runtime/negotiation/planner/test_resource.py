"""Resources: what a path is about."""

from __future__ import annotations

import pytest

from bespeak.runtime.negotiation.planner.vocabulary import Segment, resource_of

THINGS = {"order", "movie", "invoice"}


@pytest.mark.parametrize(
    ("path", "noun", "parent", "view"),
    [
        ("/orders", "order", "", ""),
        ("/orders/{id}", "order", "", ""),
        ("/customers/{id}/orders", "order", "customer", ""),
        ("/orders/{id}/invoice", "invoice", "order", ""),
        ("/movie/popular", "movie", "", "popular"),
        ("/orders/latest", "order", "", "latest"),
        ("/orders/{id}/status", "order", "", "status"),
        ("/v1/search/movie", "movie", "", ""),
        ("/customers/email/{email}/orders", "order", "customer", ""),
        ("/movies-2/{id}/posters", "poster", "movie", ""),
        ("/codes/{code}", "code", "", ""),
    ],
)
def test_the_last_segment_that_is_a_thing_is_the_noun(path: str, noun: str, parent: str, view: str) -> None:
    resource = resource_of(path, THINGS)
    assert (resource.noun, resource.parent, resource.view) == (noun, parent, view)


def test_a_parameter_belongs_to_the_noun_before_it() -> None:
    assert resource_of("/shops/{shop}/orders/{id}", THINGS).owners == (("shop", "shop"), ("id", "order"))


def test_a_segment_may_only_say_what_the_parameter_after_it_is() -> None:
    resource = resource_of("/shops/name/{name}/orders/code/{code}", THINGS)
    assert (resource.noun, resource.parent, resource.nouns) == ("order", "shop", ["shop", "order"])
    assert resource.owners == (("name", "shop"), ("code", "order"))


def test_words_that_connect_split_a_segment_into_phrases() -> None:
    assert Segment("orders-by-customer-email").phrases == (("order",), ("customer", "email"))


def test_segment_of_a_format_says_nothing_about_the_things() -> None:
    assert resource_of("/account/{id}/transactions/csv", {"account"}).noun == "transaction"
    assert resource_of("/data/transaction-history/geojson", set()).view == ""
