"""Arguments found in instructions: right values with their places, doubt offered, nothing invented."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.growth import assert_linear

from bespeak.agent.arguments.conversion import find_faults
from bespeak.agent.arguments.finding import FILL, OFFER, Arguments, find_arguments, propose
from bespeak.agent.arguments.slots import slots_of
from bespeak.agent.arguments.weighing import Pair, weigh
from bespeak.contract.endpoint import Endpoint, Semantic

NOW = datetime(2026, 11, 19, 10, 0, tzinfo=timezone(timedelta(hours=1)))  # a Thursday
TEXT, WHOLE, NUMBER, TRUTH = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
DAY = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}


def choice(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def endpoint(method: str, path: str, intent: str, fields: Mapping[str, Any], *required: str, **hints: Any) -> Endpoint:
    """Build an endpoint; the other arguments are its parameter hints."""
    return Endpoint(
        method=method,
        path=path,
        description=intent,
        semantic=Semantic(
            intent=intent,
            actor="agent",
            outcome="",
            confidence=0.9,
            impact="reversible",
            is_idempotent=False,
            parameter_hints=hints,
        ),
        input_schema={"type": "object", "properties": dict(fields), "required": list(required)},
        output_schema={},
        handler=None,  # type: ignore[arg-type]
    )


ROOM = endpoint(
    "BOOK", "/room", "Reserve a room for a guest.",
    {"guest_id": {"type": "string", "format": "uuid"}, "room_id": TEXT, "arrival": DAY, "departure": DAY},
    "guest_id", "room_id", "arrival", "departure",
)  # fmt: skip
TABLE = endpoint(
    "RESERVE", "/table", "Reserve a table.",
    {"party_size": {"type": "integer", "minimum": 1, "maximum": 12}, "when": MOMENT}, "party_size", "when",
    party_size=["number of guests", "for N people", "N covers"],
)  # fmt: skip
BOTH = endpoint("RESERVE", "/seat", "Reserve a table.", {"date": DAY, "time": TEXT}, "date", "time")
BASKET = endpoint("ORDER", "/groceries", "Order groceries.", {"items": {"type": "array", "items": TEXT}}, "items")
MONEY = endpoint(
    "TRANSFER", "/money", "Move money between accounts.",
    {
        "amount_cents": {"type": "integer", "description": "Amount in minor units"},
        "currency": choice("EUR", "USD", "GBP"), "beneficiary": TEXT, "urgent": TRUTH,
    },
    "amount_cents", "beneficiary",
)  # fmt: skip
ORDER = endpoint(
    "CREATE", "/order", "Create an order for a customer.",
    {"customer": {
        "type": "object", "properties": {"name": TEXT, "email": {"type": "string", "format": "email"}},
        "required": ["name"],
    }},
    "customer",
)  # fmt: skip
ALARM = endpoint(
    "SCHEDULE", "/alarm", "Set an alarm.",
    {
        "time": {"type": "string", "pattern": r"^\d\d:\d\d$"},
        "days": {"type": "array", "items": choice("mon", "wed", "fri")},
    },
    "time",
)  # fmt: skip
DISCOUNT = endpoint(
    "SET", "/discount", "Set a discount.",
    {"rate": {"type": "number", "minimum": 0, "maximum": 1}, "valid_until": DAY}, "rate",
)  # fmt: skip
PAUSE = endpoint(
    "PAUSE", "/machine", "Pause a machine.",
    {"duration": {"type": "string", "format": "duration"}, "timeout_seconds": WHOLE},
)  # fmt: skip
FLIGHT = endpoint(
    "FIND", "/flight", "Find flights between two cities.",
    {
        "origin": TEXT, "destination": TEXT, "date": DAY, "passengers": WHOLE, "nonstop": TRUTH,
        "cabin": choice("economy", "premium_economy", "business"),
    },
    "origin", "destination", "date",
)  # fmt: skip

ACCOUNTS = endpoint(
    "TRANSFER", "/funds", "Move money between accounts.",
    {"amount": NUMBER, "from_account": choice("savings", "checking"), "to_account": choice("savings", "checking")},
    "amount", "from_account", "to_account",
)  # fmt: skip
PRODUCT = endpoint("MULTIPLY", "/number", "Multiply two numbers.", {"a": NUMBER, "b": NUMBER}, "a", "b")
USER = endpoint("DELETE", "/user", "Delete a user.", {"username": TEXT}, "username")
RATE = endpoint(
    "CONVERT", "/money", "Convert an amount into another currency.",
    {"amount": NUMBER, "from_currency": TEXT, "to_currency": TEXT}, "amount", "from_currency", "to_currency",
)  # fmt: skip


def find(instruction: str, of: Endpoint) -> Arguments:
    return find_arguments(instruction, of, now=NOW)


@rows(
    "of, instruction, values",
    (ROOM, "Book room A12 from Tuesday to Thursday",
     {"room_id": "A12", "arrival": "2026-11-24", "departure": "2026-11-26"}),
    (ACCOUNTS, "transfer 200 from savings to checking",
     {"amount": 200, "from_account": "savings", "to_account": "checking"}),
    (ACCOUNTS, "move 200 to savings from checking",
     {"amount": 200, "from_account": "checking", "to_account": "savings"}),
    (PRODUCT, "multiply a 6 by b 7", {"a": 6, "b": 7}),
    (PRODUCT, "b 7 and a 6", {"a": 6, "b": 7}),
    (USER, "delete user bob", {"username": "bob"}),
    (RATE, "convert 50 dollars to euros", {"amount": 50, "to_currency": "euros"}),
    (ROOM, "Book room 12 from 3 to 5 December", {"room_id": "12", "arrival": "2026-12-03", "departure": "2026-12-05"}),
    (TABLE, "A table for four on Friday at 7pm, please", {"party_size": 4, "when": "2026-11-20T19:00:00+01:00"}),
    (TABLE, "Reserve on Friday for 2 people at 7pm", {"party_size": 2, "when": "2026-11-20T19:00:00+01:00"}),
    (BOTH, "A table on Friday at 7pm", {"date": "2026-11-20", "time": "19:00"}),
    (ROOM, "Book room A12 for three nights from Friday",
     {"room_id": "A12", "arrival": "2026-11-20", "departure": "2026-11-23"}),
    (BASKET, "order apples, pears and two lemons", {"items": ["apples", "pears", "two lemons"]}),
    (BASKET, "buy coffee and milk", {"items": ["coffee", "milk"]}),
    (MONEY, "Send 25.50 euros to Maria Keller urgently",
     {"amount_cents": 2550, "currency": "EUR", "urgent": True, "beneficiary": "Maria Keller"}),
    (ORDER, "Create an order for the customer Jane Miller with the email jane@acme.example",
     {"customer": {"name": "Jane Miller", "email": "jane@acme.example"}}),
    (ALARM, "Set an alarm for 6:30 am on mon, wed and fri", {"time": "06:30", "days": ["mon", "wed", "fri"]}),
    (DISCOUNT, "Give 15% off until the end of March", {"rate": 0.15, "valid_until": "2027-03-31"}),
    (PAUSE, "Stop it for half an hour with a timeout of 2 minutes", {"duration": "PT30M", "timeout_seconds": 120}),
    (FLIGHT, "Find nonstop flights from Berlin to Oslo on March 3 for two people in business",
     {"origin": "Berlin", "destination": "Oslo", "date": "2027-03-03", "passengers": 2, "nonstop": True,
      "cabin": "business"}),
)  # fmt: skip
def test_values_are_found_and_fit_the_schema(of: Endpoint, instruction: str, values: dict[str, Any]) -> None:
    found = find(instruction, of).values
    assert {name: found[name] for name in found if name in values} == values
    assert find_faults(of, found) == {}


@rows(
    "of, instruction, slot, value",
    (RATE, "convert 50 dollars to euros", "from_currency", "USD"),
    (endpoint("CREATE", "/reminder", "Create a reminder.", {"title": TEXT, "at": MOMENT}, "title"),
     "remind me to call mom tomorrow at 5pm", "title", "call mom"),
)  # fmt: skip
def test_words_are_weighed_that_a_person_would_take(of: Endpoint, instruction: str, slot: str, value: str) -> None:
    slots = slots_of(of)
    _, pairs = propose(instruction, slots, frozenset(), now=NOW)
    assert value in [pair.value for pair in pairs if slots[pair.slot].name == slot]


def test_each_value_says_where_it_stands_and_why() -> None:
    instruction = "Find flights from Berlin to Oslo on Friday"
    found = {one.name: one for one in find(instruction, FLIGHT).found}
    for name, text in {"origin": "Berlin", "destination": "Oslo", "date": "Friday"}.items():
        span = found[name].span
        assert span is not None
        assert instruction[slice(*span)] == text
        assert found[name].confidence >= FILL
    assert found["origin"].reason == 'a name after "from"'


@rows("instruction", "", "hello", "What can you do?", "本を貸してください", "Find me something nice, please")
def test_required_parameters_that_are_not_said_are_missing(instruction: str) -> None:
    result = find(instruction, FLIGHT)
    assert result.values == {}
    assert result.missing == ("origin", "destination", "date")


def test_a_value_outside_of_the_schema_is_offered_with_the_reason() -> None:
    result = find("A table for 20 people tomorrow at 7pm", TABLE)
    (offer,) = (one for one in result.offered if one.name == "party_size")
    assert offer.value == 20
    assert OFFER <= offer.confidence < FILL
    assert "maximum" in offer.reason
    assert result.missing == ("party_size",)


@pytest.mark.parametrize("instruction", ["find a room for two next weekend", "which rooms are free next weekend?"])
def test_a_period_that_is_said_in_one_word_fills_both_ends(instruction: str) -> None:
    search = endpoint("QUERY", "/rooms", "Find free rooms.", {"beds": WHOLE, "arrival": DAY, "departure": DAY})
    values = find_arguments(instruction, search, now=NOW).values
    assert (values["arrival"], values["departure"]) == ("2026-11-28", "2026-11-29")


def test_a_bare_number_is_not_taken_for_minor_units() -> None:
    result = find("pay 40 to Anna", MONEY)
    assert "amount_cents" not in result.values
    assert [one.value for one in result.offered if one.name == "amount_cents"] == [4000]


def test_a_hint_with_a_place_for_the_value_is_a_pattern() -> None:
    (found,) = (one for one in find("We need 5 covers tomorrow", TABLE).found if one.name == "party_size")
    assert (found.value, found.reason) == (5, '"5" matches a hint of party_size')


@rows(
    "instruction, value",
    ("flights from Berlin to Oslo, nonstop", True),
    ("flights from Berlin to Oslo, not nonstop", False),
)
def test_a_negation_turns_a_boolean_round(instruction: str, value: bool) -> None:
    assert find(instruction, FLIGHT).values["nonstop"] is value


def test_a_range_that_ends_before_it_starts_is_not_filled() -> None:
    result = find("Book room 12 from 2026-12-05 to 2026-12-03", ROOM)
    assert not {"arrival", "departure"} & result.values.keys()
    assert all("is after" in one.reason for one in result.offered if one.name in ("arrival", "departure"))


@rows(
    "instruction, departure",
    ("Book room 12, arrival 24 December, departure the 28th", "2026-12-28"),
    ("Book room 12 from the 10th of July to the 17th", "2027-07-17"),
)
def test_the_end_of_a_range_is_read_from_its_start(instruction: str, departure: str) -> None:
    assert find(instruction, ROOM).values["departure"] == departure


@rows(
    "instruction, value",
    ("flights from Berlin to Oslo without stops", True),
    ("flights from Berlin to Oslo with a layover", False),
)
def test_the_opposite_of_a_boolean_is_read_as_its_denial(instruction: str, value: bool) -> None:
    assert find(instruction, FLIGHT).values["nonstop"] is value


def test_a_time_has_the_offset_of_a_zone_with_summer_time() -> None:
    of = endpoint("SET", "/alarm", "Set an alarm.", {"time": {"type": "string", "format": "time"}}, "time")
    found = find_arguments("Set an alarm for 6:30 am", of, now=datetime(2026, 11, 19, tzinfo=ZoneInfo("Europe/Berlin")))
    assert found.values == {"time": "06:30:00+01:00"}


@rows(
    "instruction, values",
    ("Send it to 12 Baker Street", {"address": "12 Baker Street"}),
    ("Send it to my friend Anna Miller at 12 Baker Street", {"address": "12 Baker Street", "recipient": "Anna Miller"}),
    ("Send it to Dr. Weber", {"recipient": "Dr. Weber"}),
)
def test_names_keep_their_titles_and_streets_their_numbers(instruction: str, values: dict[str, Any]) -> None:
    of = endpoint("SEND", "/letter", "Send a letter.", {"recipient": TEXT, "address": TEXT, "copies": WHOLE})
    assert find(instruction, of).values == values


def test_a_verb_is_not_a_misspelt_choice() -> None:
    of = endpoint("SHOW", "/balance", "Show a balance.", {"account": choice("checking", "savings")})
    assert find("I need my balance checked", of).values == {}
    assert find("my savngs account", of).values == {"account": "savings"}


def test_what_stands_behind_a_listed_value_is_a_value_of_its_own() -> None:
    of = endpoint("FIND", "/product", "Search products.", {"query": TEXT, "color": choice("white", "black")}, "query")
    result = find("find a white desk lamp", of)
    assert {one.name: one.value for one in (*result.found, *result.offered)} == {"query": "desk lamp", "color": "white"}


def test_a_pair_is_less_likely_beside_a_rival() -> None:
    slots = slots_of(FLIGHT)
    _, alone = propose("fly from Berlin", slots, frozenset(), now=NOW)
    _, beside = propose("fly from Berlin or from Oslo", slots, frozenset(), now=NOW)
    table = {feature: 0.5 for pair in beside for feature in pair.features}
    table |= {f"calibration={pair.kind}|same-slot": -1.0 for pair in beside}

    def confidence(pairs: list[Pair]) -> float:
        return max(one.confidence for one in weigh(pairs, slots, table) if one.value == "Berlin" and one.slot == 0)

    assert confidence(beside) < confidence(alone)


def test_the_clock_decides_about_relative_dates() -> None:
    later = NOW + timedelta(days=10)
    found = find_arguments("flights from Berlin to Oslo tomorrow", FLIGHT, now=later).values
    assert found["date"] == (later + timedelta(days=1)).date().isoformat()


def test_a_clock_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        find_arguments("tomorrow", FLIGHT, now=NOW.replace(tzinfo=None))


def test_faults_name_the_refused_arguments_and_no_missing_ones() -> None:
    faults = find_faults(ORDER, {"customer": {"email": "nobody"}})
    assert list(faults) == ["customer.email"]
    assert list(find_faults(TABLE, {"party_size": 0, "when": "2026-11-20T19:00:00Z"})) == ["party_size"]


def test_a_recursive_schema_is_read_one_level_deep() -> None:
    node = {"type": "object", "properties": {"name": TEXT, "child": {"$ref": "#/$defs/node"}}}
    of = endpoint("CREATE", "/node", "Create a node.", {"node": {"$ref": "#/$defs/node"}})
    tree = Endpoint(
        method=of.method, path=of.path, description=of.description, semantic=of.semantic, output_schema={},
        input_schema={**of.input_schema, "$defs": {"node": node}}, handler=of.handler,
    )  # fmt: skip
    assert [slot.name for slot in slots_of(tree)] == ["node.name", "node.child"]
    assert find("Create a node named Bob", tree).values == {"node": {"name": "Bob"}}


def test_an_undeclared_parameter_of_the_path_is_required() -> None:
    of = endpoint("GET", "/ticket/{ticket_id}", "Show a ticket.", {})
    assert find("show it", of).missing == ("ticket_id",)


KINDS = (TEXT, WHOLE, NUMBER, TRUTH, DAY, MOMENT, choice("red", "dark_blue"), {"type": "array", "items": TEXT}, True)
NAMES = [
    "from", "to", "start_date", "end_date", "guests", "city", "name", "title", "price", "is_open", "color", "id", "a.b",
]  # fmt: skip
SAID = (
    "from to Berlin Anna on friday 7pm for 4 people $5 not open red dark blue : = is named the of and , . ' \" name 5%"
)
INSTRUCTIONS = st.text() | st.lists(st.sampled_from(SAID.split()), max_size=30).map(" ".join)


@given(INSTRUCTIONS, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(KINDS), max_size=8))
def test_any_instruction_gives_arguments_that_the_schema_takes(instruction: str, fields: dict[str, Any]) -> None:
    of = endpoint("DO", "/thing", "Do a thing.", fields, *fields)
    result = find_arguments(instruction, of, now=datetime(2026, 11, 19, tzinfo=UTC))
    assert find_faults(of, result.values) == {}
    assert result.missing == tuple(name for name in fields if name not in {one.name for one in result.found})
    for one in (*result.found, *result.offered):
        assert one.span is not None
        assert 0 <= one.span[0] < one.span[1] <= len(instruction)
        assert OFFER <= one.confidence <= 1


def test_work_grows_with_the_instruction_at_most_linearly() -> None:
    assert_linear(lambda size: find("Find flights from Berlin to Oslo on Friday for two people. " * size, FLIGHT), 6)


def test_work_for_many_parameters_is_bounded() -> None:
    def work(size: int) -> Arguments:
        fields = {f"{name.replace('.', '')}_{at}": KINDS[at % 8] for at in range(size) for name in NAMES}
        return find("from Berlin to Oslo on Friday for 4 people named Anna " * 40, endpoint("DO", "/x", "Do.", fields))

    assert_linear(work, 5)
