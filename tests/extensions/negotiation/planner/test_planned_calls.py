"""Plans do what the proposal asked for; those whose meaning does not fit are not approved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.planner.contracts import contract, contracts
from tests.extensions.negotiation.planner.services import HOTEL, approved, doubtful, plan, refused
from tests.service import Bench, build

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import Composition, RegisteredFunction
from bespeak.extensions.negotiation.plan import Impossible, Plan
from bespeak.extensions.negotiation.planner.planner import Planner

CUSTOMERS = [
    {"id": "c1", "name": "Ada", "email": "ada@example.org", "address": {"city": "Riga"}},
    {"id": "c2", "name": "Bo", "email": "bo@example.org", "address": {"city": "Oslo"}},
]
ORDERS = [
    {"id": "o1", "customer_id": "c1", "product_id": "p1", "total": 30.0, "placed": "2026-01-05"},
    {"id": "o2", "customer_id": "c2", "product_id": "p2", "total": 80.0, "placed": "2026-02-07"},
    {"id": "o3", "customer_id": "c1", "product_id": "p2", "total": 55.0, "placed": "2026-03-09"},
]
PRODUCTS = {"p1": {"id": "p1", "title": "Lamp", "price": 30.0}, "p2": {"id": "p2", "title": "Desk", "price": 55.0}}
refunded: list[dict[str, Any]] = []


def list_customers(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"customers": CUSTOMERS}


def fetch_customer(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return next(one for one in CUSTOMERS if one["id"] == input["id"])


def list_orders(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    wanted = input.get("customer_id")
    kept = [one for one in ORDERS if wanted in (None, one["customer_id"])]
    start = int(input.get("cursor", "0"))
    page = {"orders": kept[start : start + 1]}
    return page | ({"next_cursor": str(start + 1)} if start + 1 < len(kept) else {})


def fetch_order(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return next(one for one in ORDERS if one["id"] == input["id"])


def fetch_product(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return PRODUCTS[input["id"]]


def fetch_locker(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    assert input["id"] == 7
    return {"id": 7, "order_id": "o2"}


def refund(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    refunded.append(input)
    return {"refund_id": f"r-{input['id']}"}


BRANCHES = [{"id": "b1", "city": "Riga", "lead_id": "c1"}, {"id": "b2", "city": "Oslo", "lead_id": "c2"}]


def list_branches(input: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: A002
    return BRANCHES


SHOP: dict[str, Callable[..., Any]] = {
    "LIST /customers -> customers[].id customers[].name customers[].email:e customers[].address.city": list_customers,
    "FETCH /customers/{id} -> id name email:e address.city": fetch_customer,
    "LIST /orders customer_id? cursor? -> orders[].id orders[].customer_id orders[].product_id orders[].total:n "
    "orders[].placed:d next_cursor?": list_orders,
    "FETCH /orders/{id} -> id customer_id product_id total:n placed:d": fetch_order,
    "FETCH /products/{id} -> id title price:n": fetch_product,
    "LIST /branches -> [].id [].city": list_branches,
    "FETCH /lockers/{id} id:i -> id:i order_id": fetch_locker,
    "!REFUND /orders/{id} reason -> refund_id": refund,
}
ENDPOINTS = [
    replace(contract(line), handler=RegisteredFunction(function="tests.function", target=target, inline=True))
    for line, target in SHOP.items()
]


def serve(line: str) -> tuple[Bench, Endpoint]:
    """Plan a proposal and serve it beside the shop."""
    proposal = contract(line)
    plan = Planner(ENDPOINTS).plan(proposal)
    assert isinstance(plan, Plan), plan
    assert plan.is_certain, plan.doubts
    endpoint = replace(
        proposal,
        handler=Composition(recipe=plan.recipe.name),
        errors=(DeclaredError("composition_failed"),),
        semantic=replace(proposal.semantic, confidence=plan.confidence, is_idempotent=plan.is_idempotent),
    )
    bench = build(*ENDPOINTS, endpoint, recipes=(plan.recipe,))
    assert [finding.message for finding in bench.findings if finding.severity == "error"] == []
    return bench, endpoint


@rows(
    "line, sent, answer",
    # What is made of all rows reads all pages.
    ("COUNT /customers/{customer_id}/orders -> order_count:i", {"customer_id": "c1"}, {"order_count": 2}),
    (
        "SUMMARIZE /customers/{customer_id}/orders -> total_total:n average_total:n max_total:n",
        {"customer_id": "c1"},
        {"total_total": 85.0, "average_total": 42.5, "max_total": 55.0},
    ),
    ("COUNT /branches -> count:i", {}, {"count": 2}),
    # A key may be given as a text, whatever the endpoint takes.
    ("FETCH /locker locker_id -> order_id", {"locker_id": "7"}, {"order_id": "o2"}),
    # The word of the path gives the order, and its end.
    (
        "FETCH /customers/{customer_id}/latest-order -> order_id placed:d",
        {"customer_id": "c1"},
        {"order_id": "o3", "placed": "2026-03-09"},
    ),
    (
        "FIND /orders/largest limit:i -> orders[].id orders[].total:n",
        {"limit": 1},
        {"orders": [{"id": "o2", "total": 80.0}]},
    ),
    # A list at the top level is filtered and picked from like any other.
    ("FIND /branches city -> branches[].branch_id", {"city": "Oslo"}, {"branches": [{"branch_id": "b2"}]}),
    ("FETCH /branches branch_id -> city", {"branch_id": "b1"}, {"city": "Riga"}),
    (
        "FIND /orders/large min_total?:n limit?:i -> orders[].id orders[].total:n",
        {"min_total": 50},
        {"orders": [{"id": "o2", "total": 80.0}, {"id": "o3", "total": 55.0}]},
    ),
    (
        "FIND /orders/large min_total?:n limit?:i -> orders[].id orders[].total:n",
        {"limit": 1},
        {"orders": [{"id": "o1", "total": 30.0}]},
    ),
    (
        "FIND /orders/recent placed_after:d sort?=total|-total -> orders[].order_id",
        {"placed_after": "2026-01-31", "sort": "total"},
        {"orders": [{"order_id": "o3"}, {"order_id": "o2"}]},
    ),
    (
        "LIST /customers/orders customer_email:e -> orders[].id orders[].product.title",
        {"customer_email": "ada@example.org"},
        {"orders": [{"id": "o1", "product": {"title": "Lamp"}}, {"id": "o3", "product": {"title": "Desk"}}]},
    ),
    (
        "FETCH /orders/{order_id}/customer -> customer.name customer.address.city order_total:n",
        {"order_id": "o2"},
        {"customer": {"name": "Bo", "address": {"city": "Oslo"}}, "order_total": 80.0},
    ),
    (
        "LIST /orders/customers -> orders[].id orders[].customer_name",
        {},
        {
            "orders": [
                {"id": "o1", "customer_name": "Ada"},
                {"id": "o2", "customer_name": "Bo"},
                {"id": "o3", "customer_name": "Ada"},
            ]
        },
    ),
    ("!REFUND /orders order_id reason -> refund_id", {"order_id": "o3", "reason": "scratched"}, {"refund_id": "r-o3"}),
)
def test_a_plan_answers_as_proposed(line: str, sent: dict[str, Any], answer: dict[str, Any]) -> None:
    bench, endpoint = serve(line)
    path = endpoint.path
    for name, value in sent.items():
        path = path.replace(f"{{{name}}}", str(value))
    assert bench.send(endpoint.method, path, sent).json == answer


Case = tuple[str, str, str, list[Endpoint]]


def read(name: str) -> list[Case]:
    """Read a file: verdict, paths of the right plan, proposal, service."""
    found: list[Case] = []
    text = Path(__file__).with_name(name).read_text("utf-8")
    for block in text.split("\n= ")[1:]:
        lines = [line for line in block.splitlines()[1:] if line]
        service = contracts("\n".join(line for line in lines if not line.startswith(("yes ", "maybe ", "no "))))
        for line in lines:
            if line.startswith(("yes ", "maybe ", "no ")):
                judged, proposal = line.split(" | ")
                verdict, _, paths = judged.partition(" ")
                found.append((verdict, paths, proposal, service))
    return found


CASES = read("judged_proposals.txt")


def select(verdict: str) -> list[Case]:
    return [case for case in CASES if case[0] == verdict]


@pytest.mark.parametrize("case", select("yes"), ids=lambda case: case[2])
def test_what_is_possible_is_approved_with_the_right_plan(case: Case) -> None:
    _, paths, proposal, service = case
    found = Planner(service).plan(contract(proposal))
    assert isinstance(found, Plan), found
    assert found.is_certain, found.doubts
    assert ",".join(endpoint.path for endpoint in found.endpoints) == paths


@pytest.mark.parametrize("case", select("maybe"), ids=lambda case: case[2])
def test_what_is_doubtful_is_never_approved(case: Case) -> None:
    found = Planner(case[3]).plan(contract(case[2]))
    assert not (isinstance(found, Plan) and found.is_certain)
    assert not isinstance(found, Plan) or found.doubts


@pytest.mark.parametrize("case", select("no"), ids=lambda case: case[2])
def test_what_is_impossible_is_not_even_suggested_with_certainty(case: Case) -> None:
    found = Planner(case[3]).plan(contract(case[2]))
    assert not (isinstance(found, Plan) and found.is_certain), found


GUARDED_SHOP = contracts("""
FETCH /customers/{id} -> id name email:e card.address.city
LIST /customers email?:e -> customers[].id customers[].name
LIST /orders customer_id? -> orders[].id orders[].total:n
LIST /orders/archived customer_id? -> orders[].id orders[].total:n orders[].archived_at:t
LIST /trash/orders customer_id? -> orders[].id orders[].total:n
FETCH /me -> id name email:e
FETCH /warehouses/{id} -> id name orders[].id orders[].total:n
!REFUND /orders/{id} amount:n -> refund_id
!PAY /orders/{id} amount:n -> payment_id
""")
DESK = contracts("""
SEARCH /users query? -> users[].id users[].name
LIST /tasks/{id}/comments -> comments[].text
FETCH /tasks/{id} -> id title workspace_id
LIST /tags workspace_id? -> tags[].id tags[].name
LIST /macros/active -> macros[].id macros[].title macros[].active:b
LIST /agents next_page? -> agents[].id agents[].name has_more:b
""")
ROOMS = contracts("SEARCH /rooms query -> rooms[].id rooms[].name\n!BOOK /rooms/{id} guest_id -> booking_id")
HOTELS = contracts("FETCH /rooms/{id} -> id hotel_id\nFETCH /hotels/{id} -> id name")
SECTIONS = contracts("LIST /sections -> sections[].id sections[].category_id")
ADDONS = contracts("FETCH /services/{id} -> id name addons[].name\nFETCH /addons/{id} -> id name")
SHIPS = contracts("""
FETCH /users/{id} -> id email:e
FETCH /users/email/{email} -> id email:e
FETCH /ships/{id} -> id user_id
LIST /orders user_id? -> items[].id items[].user_id
""")


FLEET = contracts("""
LIST /devices -> devices[].id:i devices[].group_id:i devices[].name
LIST /groups -> groups[].id:i groups[].group_id:i groups[].name
FETCH /positions/{id} id:i -> id:i device_id:i speed:n
LIST /drivers user_id?:i -> drivers[].id:i drivers[].name
LIST /users user_id? -> users[].id:i users[].name
""")
LEAGUE = contracts("""
FETCH /players/{id} -> id name global_team_id
LIST /teams -> teams[].team_id teams[].global_team_id teams[].name
FETCH /visits/{id} -> id stadium stadium_id
FETCH /stadiums/{id} -> id city
""")
PODCASTS = contracts("""
FETCH /podcasts/{id} -> id title latest_episode_id
LIST /episodes ids -> episodes[].id episodes[].title
FETCH /episodes/{id} -> id title
LIST /people -> people[].id people[].name people[].last_cadence_id
FETCH /cadences/{id} -> id name
LIST /tracks ids -> tracks[].id tracks[].name
LIST /me/tracks -> items[].id items[].name items[].album_id
LIST /me/albums -> items[].id items[].name
LIST /hooks -> hooks[].id hooks[].url included[].kind
COUNT /boxes -> boxes[].size boxes[].quantity:i
""")
FORUM = contracts("""
FETCH /boards/search/{query} -> id owner.name
LIST /clips/{id}/clips -> clips[].length:n clips[].label
LIST /posts limit?:i==20 -> posts[].id posts[].title
LIST /topics -> topics[].id topics[].title topics[].score:n next_page_link
LIST /replies start?:i count?:i -> replies[].id replies[].text
""")


def without(*parts: str) -> list[Endpoint]:
    return [one for one in GUARDED_SHOP if not any(part in str(one) for part in parts)]


@rows(
    "judge, line, service, said",
    # An input that nothing uses is refused, or doubtful if it is optional.
    (refused, "LIST /orders customer_id colour -> orders[].id", GUARDED_SHOP, "colour"),
    (doubtful, "LIST /orders customer_id colour? -> orders[].id", GUARDED_SHOP, "colour"),
    # A known word of the path must be dealt with; an unknown one needs an input that says what it means.
    (refused, "LIST /warehouses/orders customer_id -> orders[].id", GUARDED_SHOP, "warehouse"),
    (doubtful, "LIST /orders/cheap customer_id -> orders[].id", GUARDED_SHOP, "cheap"),
    (approved, "LIST /orders/cheap customer_id max_total:n -> orders[].id", GUARDED_SHOP, ""),
    (doubtful, "LIST /categories/{category_id}/zorbles -> sections[].id", SECTIONS, ""),
    # A list or a view that nobody mentioned is not taken.
    (
        doubtful,
        "LIST /orders customer_id -> orders[].id",
        [one for one in GUARDED_SHOP if str(one) != "LIST /orders"],
        "trash",
    ),
    (refused, "LIST /orders customer_id -> orders[].archived_at:t", GUARDED_SHOP, ""),
    (approved, "LIST /orders/archived customer_id -> orders[].archived_at:t", without("trash"), ""),
    (refused, "LIST /macros active:b -> macros[].title macros[].active:b", DESK, ""),
    # A call that does not depend on the key is not about it.
    (refused, "FETCH /users/{user_id} -> name email:e", without("/customers"), ""),
    # A list inside something else is not the collection, but a field of the object that has it.
    (
        doubtful,
        "LIST /warehouses/{id}/orders -> orders[].id orders[].total:n",
        [one for one in GUARDED_SHOP if one.path in ("/warehouses/{id}", "/customers/{id}")],
        "",
    ),
    (approved, "FETCH /services/{id} -> name addons[].name", ADDONS, ""),
    (doubtful, "LIST /services/{id}/addons -> addons[].name", ADDONS, ""),
    # A value object belongs to what has it.
    (refused, "FETCH /customers/{id} -> name address.city", GUARDED_SHOP, ""),
    # Verbs of one class are not the same deed.
    (refused, "!REFUND /orders/{id} amount:n -> refund_id", without("REFUND"), ""),
    # Nothing is changed that was only found by a text.
    (doubtful, "!BOOK /rooms room_name guest_id -> booking_id", ROOMS, "first match"),
    # A plan never does more than the proposal claims.
    (refused, "PAY /orders/{id} amount:n -> payment_id", GUARDED_SHOP, "semantic.impact"),
    (refused, "~PAY /orders/{id} amount:n -> payment_id", GUARDED_SHOP, "semantic.impact"),
    # A parameter that contradicts its place is doubtful.
    (doubtful, "FETCH /hotels/{room_id} -> name", HOTELS, ""),
    (approved, "FETCH /rooms/{room_id}/hotel -> name", HOTELS, ""),
    # A search that is told nothing is not a list of everything.
    (refused, "LIST /users -> users[].name", DESK, "search"),
    # What a thing shares with others does not make them its own, even if the key is looked up twice.
    (refused, "LIST /tasks/{task_id}/tags -> tags[].name", DESK, ""),
    (refused, "LIST /ships/{ship_id}/orders -> orders[].id", SHIPS, ""),
    # A distance is not a comparison.
    (approved, "LIST /hotels/by-city city -> hotels[].id", HOTEL, ""),
    (doubtful, "LIST /hotels/near city -> hotels[].id", HOTEL, "`near`"),
    # Beside its own id, that of a group is the group that it belongs to.
    (approved, "LIST /devices -> devices[].name devices[].group_name", FLEET, ""),
    # No way leads round a key that is given, even if it must be converted.
    (approved, "LIST /users/{user_id}/drivers -> drivers[].name", FLEET, ""),
    # A key is compared with the column of its own name, and a name beside an id is none.
    (refused, "FETCH /players/{player_id}/team -> team_name", LEAGUE, ""),
    (approved, "FETCH /visits/{visit_id}/stadium -> city", LEAGUE, ""),
    # Who played a role last is not who takes part, and the latest is not all.
    (refused, "LIST /cadences/{cadence_id}/people -> people[].name", PODCASTS, ""),
    (doubtful, "LIST /podcasts/{podcast_id}/episodes -> episodes[].title", PODCASTS, "by its key"),
    # What the caller has of a collection is not the collection.
    (doubtful, "LIST /albums/{album_id}/tracks -> tracks[].name", PODCASTS, "`me`"),
    # Only the list that a condition is about is chosen by it.
    (refused, "FETCH /hooks/{hook_id}/parts -> hooks[].url included[].kind", PODCASTS, ""),
    # Rows that are counts are not counted.
    (doubtful, "COUNT /boxes -> count:i", PODCASTS, "lists counts"),
    # The clips below a clip are others.
    (doubtful, "FETCH /clips/{clip_id} -> length:n", FORUM, "Which"),
    # Words to look for are no key.
    (refused, "FETCH /boards/{board_id}/owner -> owner_name", FORUM, ""),
    # A page is not the list, unless so many were asked for.
    (doubtful, "LIST /posts -> posts[].title", FORUM, "pages"),
    (approved, "LIST /posts limit:i -> posts[].title", FORUM, ""),
    (doubtful, "LIST /topics/good min_score:n -> topics[].title", FORUM, "pages"),
    (approved, "LIST /replies -> replies[].text", FORUM, ""),
    # A key is not looked for in a list that may go on.
    (doubtful, "FETCH /agents/{agent_id} -> name", DESK, ""),
)
def test_a_plan_must_mean_what_the_proposal_means(
    judge: Callable[[str, Iterable[Endpoint]], Plan | Impossible], line: str, service: list[Endpoint], said: str
) -> None:
    found = judge(line, service)
    told = found.doubts if isinstance(found, Plan) else (found.misses[0].field, found.misses[0].reason)
    assert said in " ".join(told)


def test_a_list_that_the_proposal_names_is_taken() -> None:
    assert [str(one) for one in approved("LIST /orders customer_id -> orders[].id", GUARDED_SHOP).endpoints] == [
        "LIST /orders"
    ]


def test_what_belongs_to_a_thing_is_not_the_thing_itself() -> None:
    service = contracts("LIST /incidents -> incidents[].id incidents[].title")
    approved("LIST /incidents/{id} -> incidents[].id incidents[].title", service)
    asked = "LIST /incidents/{id}/related-incidents -> related_incidents[].id related_incidents[].title"
    assert not isinstance(found := plan(asked, service), Plan) or not found.is_certain


def test_ordinary_proposals_are_approved_or_countered_with_the_right_plan() -> None:
    planners: dict[int, Planner] = {}
    missed = []
    cases = read("ordinary_proposals.txt")
    for verdict, paths, proposal, service in cases:
        found = planners.setdefault(id(service), Planner(service)).plan(contract(proposal))
        is_right = isinstance(found, Plan) and sorted(one.path for one in found.endpoints) == sorted(paths.split(","))
        assert is_right or isinstance(found, Impossible) or not found.is_certain, proposal
        if verdict == "yes" and not is_right:
            missed.append(proposal)
    assert len(missed) * 20 <= len([case for case in cases if case[0] == "yes"]), missed
