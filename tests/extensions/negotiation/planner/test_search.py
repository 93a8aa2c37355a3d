"""Search: chains of calls, keys, and bounds."""

from __future__ import annotations

from tests.extensions.negotiation.planner.contracts import contract, contracts
from tests.extensions.negotiation.planner.services import HOTEL, approved, doubtful, refused

from bespeak.extensions.negotiation.plan import Impossible
from bespeak.extensions.negotiation.planner.planner import Planner


def test_a_chain_goes_from_one_id_to_the_next() -> None:
    assert [str(one) for one in approved("FETCH /rooms/{id}/hotel -> name city").endpoints] == [
        "FETCH /rooms/{id}",
        "FETCH /hotels/{id}",
    ]


def test_one_of_a_list_is_taken_by_its_key() -> None:
    found = approved("FETCH /guests guest_email:e -> guest_id name")
    source = found.recipe.output["name"].to_json()
    assert (source["value"], source["pick"], source["get"]) == ("step_1.guests", "only", "name")
    assert source["where"] == [{"field": "email", "op": "eq", "value": {"kind": "proposal", "value": "guest_email"}}]


def test_one_of_a_list_without_a_key_is_only_a_suggestion() -> None:
    assert "Give a key" in doubtful("FETCH /guest -> guest_id email:e").doubts[0]


def test_the_first_hit_of_a_search_is_taken_for_a_name() -> None:
    films = contracts("""
SEARCH /movies query -> results[].id results[].title
FETCH /movies/{id} -> id title runtime:i
LIST /movies/{id}/reviews -> id reviews[].author reviews[].text
""")
    found = approved("LIST /movies/reviews movie_name -> reviews[].author reviews[].text", films)
    assert [one.path for one in found.endpoints] == ["/movies", "/movies/{id}/reviews"]


def test_a_required_input_with_one_value_is_a_constant() -> None:
    service = contracts("FETCH /prices/{id} kind=net -> id amount:n")
    assert approved("FETCH /prices/{id} -> amount:n", service).recipe.steps[0].input["kind"].value == "net"


def test_an_endpoint_that_needs_what_it_should_give_is_no_source_of_it() -> None:
    service = contracts("FETCH /keys/{id} -> id secret")
    assert refused("FETCH /key owner -> key_id", service).misses


def test_endpoints_that_are_not_usable_are_not_steps() -> None:
    found = Planner(HOTEL).plan(contract("FETCH /rooms/{id} -> price:n"), lambda one: one.path != "/rooms/{id}")
    assert isinstance(found, Impossible) or all(one.path != "/rooms/{id}" for one in found.endpoints)


def test_the_search_ends_at_its_expansions_and_says_so() -> None:
    found = Planner(HOTEL).plan(contract("FETCH /rooms/{id}/hotel -> name city"), expansions=3)
    assert isinstance(found, Impossible)
    assert found.exhausted


def test_the_clock_only_ever_refuses() -> None:
    times = iter(range(1_000_000))
    planner = Planner(HOTEL, clock=lambda: next(times) * 10.0)
    found = planner.plan(contract("FETCH /rooms/{id}/hotel -> name city"), expansions=20_000)
    assert isinstance(found, Impossible)


def test_inputs_of_one_meaning_are_bound_by_their_names() -> None:
    service = contracts("~UPDATE /teams/{team_id} id name kind label note -> id name")
    approved("~UPDATE /teams/{team_id} id name kind label note -> id name", service)


def test_of_equal_fields_the_one_in_the_same_container_is_taken() -> None:
    milestones = "FETCH /milestones/{id} -> id title"
    issue = contracts(f"FETCH /issues/{{id}} -> title project_id milestone.project_id\n{milestones}")
    assert approved("FETCH /issues/{id} -> project_id", issue).recipe.output["project_id"].value == "step_1.project_id"
    issues = contracts(f"LIST /issues -> items[].project_id items[].milestone.project_id\n{milestones}")
    columns = approved("LIST /issues -> items[].milestone.project_id", issues).recipe.output["items"].select
    assert columns is not None
    assert columns["milestone"].to_json()["select"]["project_id"]["value"] == "milestone.project_id"
