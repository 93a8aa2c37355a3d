"""Endpoints are found by the words of users."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents.openapi.judged_operations import judge_group, read_table
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.matching import EndpointIndex

QUERIES = Path(__file__).with_name("searched_capabilities.txt")
FLOOR = 0.83
"""Least share of the queries whose operation is among the first five of 445; words alone reach 0.64."""


def test_wanted_operation_decides_among_endpoints_and_texts_beside_them_are_ranked_too() -> None:
    methods = ("LIST", "CREATE", "REMOVE", "UPDATE")
    index = EndpointIndex([make_endpoint(method, "/rooms", echo) for method in methods])
    for need, method in (("get rid of rooms", "REMOVE"), ("which rooms are there", "LIST"), ("add rooms", "CREATE")):
        assert methods[index.rank(need)[0][1]] == method, need
    index = EndpointIndex([make_endpoint("LIST", "/rooms", echo)], others=["a concierge for guests"])
    assert [place for _, place in index.rank("concierge")] == [1]


def test_parameters_hints_and_names_are_searched() -> None:
    room = make_endpoint("LIST", "/rooms", echo, properties={"minimumBeds": {"type": "integer"}})
    halls = make_endpoint("LIST", "/halls", echo)
    index = EndpointIndex([halls, room], ["list_halls", "lodging_overview"])
    assert [place for _, place in index.rank("beds")] == [1]
    assert [place for _, place in index.rank("lodging")] == [1]


@pytest.mark.parametrize("need", ["", "   ", "zebra", "the", "\x00", "💥" * 2000, "x" * 100_000])
def test_a_need_that_shares_no_word_finds_nothing(need: str) -> None:
    assert EndpointIndex([make_endpoint("LIST", "/rooms", echo)]).rank(need) == []


def test_scores_lie_between_zero_and_one_and_come_in_order() -> None:
    endpoints = [make_endpoint(method, path, echo) for method in ("LIST", "BOOK") for path in ("/rooms", "/beds/{id}")]
    scores = [score for score, _ in EndpointIndex(endpoints).rank("book a bed in a room")]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_operations_of_many_apis_are_found_in_the_words_of_users() -> None:
    operations: list[tuple[str, Endpoint]] = [
        (f"{judged.method} {judged.path}", facade.endpoint)
        for group in read_table()
        for judged, facade in judge_group(group)
    ]
    index = EndpointIndex([endpoint for _, endpoint in operations])
    missed, count = [], 0
    for line in QUERIES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            query, _, accepted = line.partition(" | ")
            found = {operations[place][0] for _, place in index.rank(query)[:5]}
            count += 1
            if found.isdisjoint(accepted.split(" ; ")):
                missed.append(query)
    assert count >= 90
    assert 1 - len(missed) / count >= FLOOR, missed
