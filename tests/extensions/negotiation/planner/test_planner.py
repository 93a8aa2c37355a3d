"""The planner as a whole, its search, and its strategies for lists."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.negotiation.planner.contracts import contract, contracts
from tests.extensions.negotiation.planner.services import HOTEL, approved, doubtful, refused

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.negotiation.plan import Impossible, Plan
from bespeak.extensions.negotiation.planner.planner import FanOut, Planner

BOMB: dict[str, Any] = {
    "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 60}},
    "properties": {"x": {"$ref": "#/$defs/a"}},
}
NODE: dict[str, Any] = {"properties": {"id": {"type": "string"}, "child": {"$ref": "#"}, "other": {"$ref": "#"}}}


def nest(keyword: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
    for _ in range(depth):
        found = {keyword: [found, {"type": "object", "properties": {"name": {"type": "string"}}}]}
    return found


@rows(
    "schema",
    {"properties": {f"f{n}": {"type": "string"} for n in range(10_000)}},
    BOMB,
    NODE,
    nest("allOf", 100),
    nest("oneOf", 100),
    {"properties": {"x": {"enum": [f"v{n}" for n in range(100_000)]}}},
    {"patternProperties": {"(a+)+$": {"type": "string"}}},
    {"properties": {"x": {"$ref": "#/properties/x"}}},
    {"properties": []},
    {"properties": {"": {"type": "string"}, "a.b": {"type": "string"}, "[]": {"type": "array", "items": {}}}},
    {"properties": {f"list{n}": {"type": "array", "items": {"properties": {"id": {}}}} for n in range(60)}},
    {"type": 5, "properties": {"x": {"type": [None, 3], "enum": [{}], "items": 7}}},
    ids=[
        "many",
        "bomb",
        "recursive",
        "allOf",
        "oneOf",
        "enum",
        "pattern",
        "loop",
        "list",
        "names",
        "lists",
        "nonsense",
    ],
)
@pytest.mark.parametrize("side", ["input_schema", "output_schema"])
def test_hostile_schemas_are_refused_and_not_approved(schema: dict[str, Any], side: str) -> None:
    proposal = replace(contract("FETCH /rooms/{id} colour -> price:n paint"), **{side: schema})
    found = Planner(HOTEL).plan(proposal)
    assert isinstance(found, Impossible)
    assert found.misses[0].reason


def test_odd_names_are_refused_and_do_not_disturb_others() -> None:
    proposal = replace(contract("FETCH /rooms/{id} -> price:n"), output_schema={"properties": {"a.b": {}}})
    found = Planner(HOTEL).plan(proposal)
    assert isinstance(found, Impossible)
    assert "'a.b'" in found.misses[0].reason
    odd = replace(HOTEL[0], path="/odd", output_schema={"properties": {"": {}, "[]": {"items": NODE}, "a.b": {}}})
    assert isinstance(Planner([*HOTEL, odd]).plan(contract("FETCH /rooms/{id} -> price:n")), Plan)


def test_a_plan_found_before_the_bound_counts_but_one_before_the_time_limit_does_not() -> None:
    proposal = contract("FIND /rooms/grand -> rooms[].id")
    full = Planner(HOTEL).plan(proposal)
    assert isinstance(full, Plan)
    assert not full.is_certain
    answers = [Planner(HOTEL).plan(proposal, expansions=bound) for bound in range(1, 60)]
    assert isinstance(answers[0], Impossible)
    assert answers[0].exhausted
    assert any(answer == full for answer in answers)


def test_steps_and_expansions_of_the_search_are_bounded() -> None:
    proposal = contract("FETCH /rooms/{id}/hotel -> name city")
    assert isinstance(Planner(HOTEL).plan(proposal, depth=1), Impossible)
    found = Planner(HOTEL).plan(contract("FETCH /rooms/{id}/hotel -> name city"), expansions=3)
    assert isinstance(found, Impossible)
    assert found.exhausted


def test_a_chain_goes_from_id_to_id_and_its_steps_decide_scopes_impact_and_confidence() -> None:
    found = approved("FETCH /rooms/{id}/hotel -> name city")
    assert (found.impact, found.confidence) == ("informational", round(0.9 * 0.9 * found.quality, 4))
    assert [str(one) for one in approved("FETCH /rooms/{id}/hotel -> name city").endpoints] == [
        "FETCH /rooms/{id}",
        "FETCH /hotels/{id}",
    ]


SCRIPT = """
from tests.extensions.negotiation.planner.services import plan
for line in (
    "LIST /bookings/rooms guest_email -> bookings[].id bookings[].room_kind bookings[].guest_name",
    "FETCH /rooms/{id}/hotel -> room_price:n hotel_name",
    "FETCH /rooms/{id} -> stars:i",
):
    print(plan(line))
"""


@pytest.mark.process
def test_the_hash_seed_changes_nothing() -> None:
    answers = set()
    for seed in ("0", "1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers.add(ran.stdout)
    assert len(answers) == 1


def test_one_of_a_list_is_taken_by_its_key_and_else_only_suggested() -> None:
    found = approved("FETCH /guests guest_email:e -> guest_id name")
    source = found.recipe.output["name"].to_json()
    assert (source["value"], source["pick"], source["get"]) == ("step_1.guests", "only", "name")
    assert source["where"] == [{"field": "email", "op": "eq", "value": {"kind": "proposal", "value": "guest_email"}}]
    assert "Give a key" in doubtful("FETCH /guest -> guest_id email:e").doubts[0]


def test_the_first_hit_of_a_search_is_taken_for_a_name() -> None:
    films = contracts("""
SEARCH /movies query -> results[].id results[].title
FETCH /movies/{id} -> id title runtime:i
LIST /movies/{id}/reviews -> id reviews[].author reviews[].text
""")
    found = approved("LIST /movies/reviews movie_name -> reviews[].author reviews[].text", films)
    assert [one.path for one in found.endpoints] == ["/movies", "/movies/{id}/reviews"]


def test_inputs_are_bound_by_name_and_required_ones_with_one_value_are_constants() -> None:
    service = contracts("FETCH /prices/{id} kind=net -> id amount:n")
    assert approved("FETCH /prices/{id} -> amount:n", service).recipe.steps[0].input["kind"].value == "net"
    service = contracts("~UPDATE /teams/{team_id} id name kind label note -> id name")
    approved("~UPDATE /teams/{team_id} id name kind label note -> id name", service)


def test_endpoints_that_are_unusable_or_need_what_they_should_give_are_not_steps() -> None:
    assert refused("FETCH /key owner -> key_id", contracts("FETCH /keys/{id} -> id secret")).misses
    found = Planner(HOTEL).plan(contract("FETCH /rooms/{id} -> price:n"), lambda one: one.path != "/rooms/{id}")
    assert isinstance(found, Impossible) or all(one.path != "/rooms/{id}" for one in found.endpoints)


def test_the_clock_only_ever_refuses() -> None:
    times = iter(range(1_000_000))
    planner = Planner(HOTEL, clock=lambda: next(times) * 10.0)
    found = planner.plan(contract("FETCH /rooms/{id}/hotel -> name city"), expansions=20_000)
    assert isinstance(found, Impossible)


def test_of_equal_fields_the_one_in_the_same_container_is_taken() -> None:
    milestones = "FETCH /milestones/{id} -> id title"
    issue = contracts(f"FETCH /issues/{{id}} -> title project_id milestone.project_id\n{milestones}")
    assert approved("FETCH /issues/{id} -> project_id", issue).recipe.output["project_id"].value == "step_1.project_id"
    issues = contracts(f"LIST /issues -> items[].project_id items[].milestone.project_id\n{milestones}")
    columns = approved("LIST /issues -> items[].milestone.project_id", issues).recipe.output["items"].select
    assert columns["milestone"].to_json()["select"]["project_id"]["value"] == "milestone.project_id"


def test_a_bound_filters_the_list_and_may_mean_its_only_date() -> None:
    rooms = approved("FIND /rooms/cheap max_price:n -> rooms[].id rooms[].price:n").recipe.output["rooms"].to_json()
    assert rooms["where"] == [{"field": "price", "op": "lte", "value": {"kind": "proposal", "value": "max_price"}}]
    assert set(rooms["select"]) == {"id", "price"}
    where = approved("RETRIEVE /account/{id}/transactions until:d -> transactions[].amount:n", DATA).recipe.output
    assert [(one.left.value, one.op) for one in where["transactions"].where] == [("booked", "lte")]


def test_a_filter_is_left_to_the_endpoint_that_has_it_and_else_reads_all_pages() -> None:
    found = approved("LIST /hotels city -> hotels[].name")
    assert (found.recipe.steps[0].input["city"].value, found.recipe.output["hotels"].where) == ("city", ())
    found = approved("LIST /bookings/large guest_id min_total:n -> bookings[].id bookings[].total:n")
    assert found.recipe.steps[0].pages.cursor == "next_cursor"


def test_records_are_read_by_key_and_columns_renamed_and_nested_as_proposed() -> None:
    found = approved("LIST /rooms -> items[].room.room_id items[].room_price:n")
    select = found.recipe.output["items"].to_json()["select"]
    assert select["room"]["select"]["room_id"] == {"kind": "item", "value": "id"}
    assert select["room_price"] == {"kind": "item", "value": "price"}
    found = approved("RETRIEVE /customers/{customer_id}/profile -> name email:e", DATA)
    assert found.recipe.output["name"].pick == "only"


def test_a_missing_column_is_fetched_for_each_row() -> None:
    found = approved("LIST /bookings/rooms guest_id -> bookings[].id bookings[].room_price:n")
    step = found.recipe.steps[1]
    assert (step.for_each.value, step.input["id"].value, step.on_failure) == ("step_1.bookings", "room_id", "fail")
    assert found.recipe.output["bookings"].to_json()["select"]["room_price"] == {
        "kind": "item",
        "value": "output.price",
    }


def test_two_lists_are_joined_over_a_shared_id() -> None:
    shop = contracts("""
LIST /orders -> orders[].id orders[].customer_id orders[].total:n
LIST /customers -> customers[].id customers[].name
""")
    found = approved("LIST /orders/customers -> orders[].id orders[].customer_name", shop)
    name = found.recipe.output["orders"].to_json()["select"]["customer_name"]
    assert (name["value"], name["get"], name["pick"]) == ("step_2.customers", "name", "only")
    assert name["where"] == [{"field": "id", "op": "eq", "value": {"kind": "item", "value": "customer_id"}}]


def test_rows_are_filtered_and_ordered_before_they_are_cut() -> None:
    found = approved("LIST /rooms sort=price|-price limit:i -> rooms[].id rooms[].price:n")
    rooms = found.recipe.output["rooms"]
    assert (rooms.sort.value, rooms.limit.value) == ("sort", "limit")
    found = approved("RETRIEVE /account/{id}/transactions booked_after:d limit:i -> transactions[].amount:n", DATA)
    assert set(found.recipe.steps[0].input) == {"account_id"}
    assert found.recipe.output["transactions"].limit is not None
    found = approved("RETRIEVE /account/{id}/transactions limit:i -> transactions[].amount:n", DATA)
    assert found.recipe.steps[0].input["limit"].value == "limit"
    assert found.recipe.steps[0].pages is None


DATA = contracts("""
QUERY /data/transaction-history account_id? booked?:d booked_from?:d booked_to?:d amount_min?:n amount_max?:n
  text_contains? order?=booked|-booked limit:i==100 cursor? ->
  rows[].id rows[].account_id rows[].booked:d rows[].amount:n rows[].text next_cursor?
QUERY /data/customer-profile customer_id? limit:i==100 cursor? ->
  rows[].customer_id rows[].name rows[].email:e next_cursor?
""")


def test_a_data_class_is_read_with_its_own_filters() -> None:
    found = approved(
        "RETRIEVE /account/{id}/transactions booked_from?:d min_amount?:n sort?=booked|-booked "
        "-> transactions[].amount:n",
        DATA,
    )
    sent = {name: source.value for name, source in found.recipe.steps[0].input.items()}
    assert sent == {"account_id": "id", "booked_from": "booked_from", "amount_min": "min_amount", "order": "sort"}
    assert found.recipe.output["transactions"].where == ()


@rows(
    "line, endpoints",
    # Rows are selected by what a key leads to.
    ("LIST /guests/bookings guest_email:e -> bookings[].id", ["LIST /guests", "LIST /bookings"]),
    # The verb and the noun choose the deed, whose key may be looked up.
    ("~CANCEL /bookings booking_id -> status", ["CANCEL /bookings/{id}"]),
    ("!BOOK /rooms guest_email:e room_id arrival:d departure:d -> booking_id", ["LIST /guests", "BOOK /rooms"]),
    # One call that yields everything is enough; a given id may be repeated in the result.
    ("FETCH /rooms/{id} -> price:n beds:i kind=single|double", ["FETCH /rooms/{id}"]),
    ("FETCH /guests/{guest_id} -> guest_id phone", ["FETCH /guests/{id}"]),
    ("FETCH /rooms/{id}/hotel -> room_price:n hotel_name hotel_stars:i", ["FETCH /rooms/{id}", "FETCH /hotels/{id}"]),
)
def test_a_plan_calls_these_endpoints(line: str, endpoints: list[str]) -> None:
    found = approved(line)
    assert [str(one) for one in found.endpoints] == endpoints
    assert found.impact == {"~": "reversible", "!": "irreversible"}.get(line[0], "informational")


BOOKS = contracts("""
LIST /accounts/{id}/account-statements -> account_statements[].id account_statements[].balance:n
  account_statements[].created_at
LIST /directdebits mandate_id? -> directdebits[].id directdebits[].amount:n
FETCH /flags/{id} -> id maintainer.id maintainer.email maintainer.name
LIST /entries -> entries[].id entries[].attributes.title
FETCH /squads/{squad_id_or_slug} squad_id_or_slug:i -> id:i name
FETCH /payees/{id} -> id name address.city
LIST /meters -> meters[].id meters[].level:n meters[].date_due:d
LIST /teams/{team_id}/views/latest -> views[].id
LIST /teams/{team_id}/deploys -> deploys[].id deploys[].state deploys[].created_at:t
""")


@rows(
    "judge, line, path",
    # A noun has a longer name here, or is written without its hyphen.
    (
        doubtful,
        "LIST /accounts/{account_id}/statements -> statements[].statement_id statements[].balance:n",
        "/accounts/{id}/account-statements",
    ),
    (approved, "LIST /mandates/{mandate_id}/direct-debits -> direct_debits[].amount:n", "/directdebits"),
    # What a path calls a part of a thing is the object in it.
    (approved, "FETCH /flags/{flag_id}/maintainer -> email name", "/flags/{id}"),
    (approved, "FETCH /payees/{payee_id}/address -> city", "/payees/{id}"),
    # Attributes of a document are those of what it is about.
    (approved, "LIST /entries -> entries[].entry_id entries[].title", "/entries"),
    (approved, "FETCH /squads/{squad_id} -> name", "/squads/{squad_id_or_slug}"),
    (approved, "LIST /meters/overdue due_before:d -> meters[].level:n", "/meters"),
    # A word that is a view of one thing is a superlative of others; times may be texts, which is asked.
    (approved, "FETCH /teams/{team_id}/latest-deploy -> deploy_id state", "/teams/{team_id}/deploys"),
    (
        doubtful,
        "FETCH /accounts/{id}/latest-account-statement -> balance:n",
        "/accounts/{id}/account-statements",
    ),
)
def test_names_are_read_as_the_service_has_them(
    judge: Callable[[str, Iterable[Endpoint]], Plan], line: str, path: str
) -> None:
    assert [one.path for one in judge(line, BOOKS).endpoints] == [path]


STAFF = contracts("""
LIST /employees -> [].id [].name [].email:e [].manager_id
FETCH /employees/{id} -> id name email:e manager_id
LIST /accounts -> accounts[].id accounts[].employee_id accounts[].login
!BOOK /flights/{flight_id} passenger seat_number? -> reference
""")


def test_a_role_is_looked_up_by_its_key_and_only_suggested() -> None:
    found = doubtful("FETCH /employees/{id}/manager -> name email:e", STAFF)
    assert [one.path for one in found.endpoints] == ["/employees/{id}", "/employees/{id}"]
    assert found.recipe.steps[1].input["id"].value == "step_1.manager_id"
    assert "Is the manager an employee" in found.doubts[0]
    assert "`mentor`" in doubtful("FETCH /employees/{id}/mentor -> name email:e", STAFF).doubts[0]


def test_names_without_words_are_no_fault() -> None:
    service = contracts("LIST /flights -> flights[].to:n flights[].__:s\nFETCH /x/{__} -> to:n")
    refused("FETCH /flights/{__} -> to:n __:s", service)
    refused("FETCH /flights/latest -> to:n", service)


def test_a_role_in_another_thing_is_doubted_once() -> None:
    service = contracts("FETCH /hotels/{id} id:i -> id:i name manager_id:i\nFETCH /employees/{id} id:i -> id:i name")
    assert len(doubtful("FETCH /hotels/{hotel_id}/manager -> name", service).doubts) == 1


def test_an_effect_is_found_by_the_beginning_of_a_compound() -> None:
    found = approved("!BOOK /flight-seats flight_id passenger seat_number -> reference", STAFF)
    assert set(found.recipe.steps[0].input) == {"flight_id", "passenger", "seat_number"}


def test_a_refusal_names_the_input_that_was_not_understood_and_a_name_for_it() -> None:
    miss = refused("LIST /accounts email:e -> accounts[].login", STAFF).misses[0]
    assert (miss.field, "call it `employee_email`" in miss.reason) == ("email", True), miss
    approved("LIST /accounts employee_email:e -> accounts[].login", STAFF)
    approved("LIST /employees/accounts email:e -> accounts[].login", STAFF)


def test_calls_for_each_row_state_their_bound_and_what_a_failure_does() -> None:
    proposal = contract("LIST /bookings/rooms guest_id -> bookings[].id bookings[].room_price:n")
    found = Planner(HOTEL, FanOut(20, "skip")).plan(proposal)
    assert isinstance(found, Plan)
    assert (found.recipe.steps[1].max_items, found.recipe.steps[1].on_failure) == (20, "skip")
    assert "at most 20 (rows that fail are left out)" in found.explanation[1]


PAGED = contracts("""
FETCH /carts/{id} -> id lines.items[].sku lines.has_more:b
FETCH /drafts/{id} -> id
UPDATE /orders/{id} updateDraftIfNeeded?:b -> id total:n
FETCH /orders/{id} withDraftIfNeeded?:b -> id total:n
""")


def test_an_embedded_page_is_not_the_list_and_a_word_inside_a_name_covers_nothing() -> None:
    assert "first page" in doubtful("LIST /carts/{cart_id}/lines -> lines[].sku", PAGED).doubts[0]
    refused("FETCH /orders/{id}/draft withDraftIfNeeded:b -> total:n", PAGED)


ORDERS = contracts("LIST /orders start_at? -> orders[].id orders[].total:n")


@rows(
    "line, service, said",
    # A local filter needs all pages of a list.
    ("LIST /orders/large min_total:n -> orders[].id orders[].total:n", ORDERS, "pages"),
    ("LIST /rooms -> parcels[].id parcels[].price:n", HOTEL, "parcels"),
)
def test_a_doubtful_list_is_only_a_suggestion(line: str, service: list[Endpoint], said: str) -> None:
    assert said in doubtful(line, service).doubts[0]


TEAMS = contracts("""
LIST /teams/{team_id}/channels -> channels[].id channels[].team_id
LIST /users/{user_id}/teams -> teams[].id teams[].name
FETCH /teams/name/{name} -> id name
""")
CAMPAIGNS = contracts("LIST /campaigns -> results[].id:i results[].name\nFETCH /lists/{list_id} -> id:i name")
INVOICES = contracts("!PAY /invoices/{id} iban -> payment_id")
ROOM = contracts("""
!BOOK /room guest_id room_id arrival:d -> reservation_id
QUERY /rooms arrival?:d -> rooms[].room_id rooms[].price:n
""")
ALARMS = contracts("""
LIST /alarms -> alarms[].name alarms[].stars:i
FETCH /hotels/{id} -> id name stars:i
FETCH /hotels/{id}/awards -> stars:s
""")


@rows(
    "line, service, field, reason, near",
    # An order by something that rows do not have, and a bound of another type.
    ("LIST /rooms sort=price|stars -> rooms[].id rooms[].price:n", HOTEL, "sort", "", None),
    ("FIND /rooms/cheap max_price:b -> rooms[].id rooms[].price:n", HOTEL, "max_price", "", None),
    # A key that is given is not looked up to use another input.
    ("LIST /users/{user_id}/teams/{team_id}/channels -> channels[].id", TEAMS, "", "", ""),
    # A list that is a thing of the service is not read as rows of another.
    ("FETCH /campaigns/{id} id:i -> lists[].id:i lists[].name", CAMPAIGNS, "", "", ""),
    # A field is never a reason for a deed.
    ("FETCH /rooms guest_id room_id arrival:d departure:d -> booking_id", HOTEL, "", "", ""),
    # Deeds: unknown, without an input or its key, with more impact than claimed, on another thing.
    ("~PAINT /rooms/{id} -> id", HOTEL, "", "PAINT", ""),
    ("!PAY /invoices/{id} -> payment_id", INVOICES, "", "`iban`", "PAY /invoices/{id}"),
    (
        *("!BOOK /room/cheapest guest_id arrival:d -> reservation_id", ROOM),
        *("", "`BOOK /room` needs `room_id`.", "BOOK /room"),
    ),
    (
        *("BOOK /rooms guest_id room_id arrival:d departure:d -> booking_id", HOTEL),
        *("semantic.impact", "", "BOOK /rooms"),
    ),
    ("!BOOK /guests guest_id -> booking_id", HOTEL, "", "", "BOOK /rooms"),
    # Fields: that nothing yields, of another type, of another noun, of a list, of a role.
    ("FETCH /rooms/{id} -> price:n owner_name", HOTEL, "owner_name", "", "None"),
    ("FETCH /rooms/{id} -> price:s", HOTEL, "", "another type", "/rooms"),
    ("FETCH /rooms/{id} -> stars:i", HOTEL, "", "", "FETCH /hotels/{id}"),
    ("LIST /rooms -> rooms[].id rooms[].owner", HOTEL, "rooms[].owner", "", ""),
    ("FETCH /bookings/{id} -> previous_room_id", HOTEL, "", "No usable endpoint yields", ""),
    # The nearest endpoint is about the noun and yields most of what is wanted.
    ("FETCH /hotels/{id} -> name stars:b", ALARMS, "", "", "FETCH /hotels/{id}"),
    # A result that only repeats the input is no plan.
    ("FETCH /guests/{guest_id}/key -> guest_id", HOTEL, "", "", ""),
)
def test_a_refusal_names_the_field_the_reason_and_the_nearest_endpoint(
    line: str, service: list[Endpoint], field: str, reason: str, near: str | None
) -> None:
    miss = refused(line, service).misses[0]
    assert field in (miss.field, "")
    assert reason in miss.reason
    assert near is None or near in str(miss.nearest)
