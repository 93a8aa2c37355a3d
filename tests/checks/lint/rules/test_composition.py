"""What a composition promises is not better than its steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.compositions import NUMBER as COMPOSITIONS_NUMBER
from tests.compositions import TEXT, captured, compose, given, item, recipe, step
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.composition import ValueKind, check, check_values, find_gaps, gaps, misfits, write_path
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.contract.recipe import Compensation, Condition, Paging, Source, constant
from bespeak.contract.schema.view import members_of

WRITE = make_endpoint("BOOK", "/a", echo, impact="irreversible", scopes=("rooms:book",))
UNSAFE = replace(WRITE, semantic=replace(WRITE.semantic, is_idempotent=False))


def rules(called: Any, **fields: Any) -> list[str]:
    endpoint = compose("BOOK", "/c", "r", **fields)
    return [finding.rule for finding in check(endpoint, recipe(step("BOOK /a")), {called.key: called}, Policies(), 1)]


@pytest.mark.requirement("API-12.1-7")
def test_composition_declares_the_scopes_impact_and_idempotency_of_its_steps() -> None:
    assert rules(WRITE, impact="irreversible", scopes=("rooms:book", "rooms:more")) == []
    assert rules(WRITE, impact="irreversible", scopes=("rooms:read",)) == ["H745"]
    assert rules(WRITE, impact="reversible", scopes=("rooms:book",)) == ["H746"]
    assert rules(UNSAFE, impact="irreversible", scopes=("rooms:book",)) == ["H746"]


@pytest.mark.parametrize(
    ("called", "message"),
    [(replace(WRITE, builtin=True), "not for compositions"), (replace(WRITE, missing="a store"), "lacks a store")],
)
def test_built_in_methods_that_change_something_or_do_not_work_cannot_be_steps(called: Any, message: str) -> None:
    endpoint = compose("BOOK", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    [finding] = check(endpoint, recipe(step("BOOK /a")), {called.key: called}, Policies(), 1)
    assert (finding.rule, message in finding.message) == ("H740", True)


def test_a_method_that_the_policies_forbid_cannot_be_a_step() -> None:
    policies = Policies(methods=MethodPolicy(disallow=("BOOK",)))
    endpoint = compose("RESERVE", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    [finding] = check(endpoint, recipe(step("BOOK /a")), {WRITE.key: WRITE}, policies, 1)
    assert finding.rule == "H740"


def test_a_step_is_not_undone_by_a_call_that_waits_for_a_confirmation() -> None:
    cancel = make_endpoint("CANCEL", "/a", echo, impact="irreversible")
    made = recipe(step("BOOK /a", compensate=Compensation(method="CANCEL", path="/a")))
    endpoint = compose("RESERVE", "/c", "r", impact="irreversible", scopes=("rooms:book",))
    called = {WRITE.key: WRITE, cancel.key: cancel}
    assert list(check(endpoint, made, called, Policies(), 1)) == []
    [finding] = check(endpoint, made, called, Policies(confirm_irreversible=True), 1)
    assert finding.rule == "H747"


ROW = {"type": "object", "properties": {"id": TEXT, "price": COMPOSITIONS_NUMBER}, "required": ["id"]}
FOUND = {
    "type": "object",
    "properties": {"rooms": {"type": "array", "items": ROW}, "next": TEXT},
    "required": ["rooms"],
}
FIND = make_endpoint(
    "FIND", "/rooms", echo, properties={"city": TEXT, "cursor": TEXT}, required=("city",), output=FOUND
)
FETCH = make_endpoint("FETCH", "/rooms/{id}", echo, properties={"id": TEXT}, required=("id",), output=ROW)
CALLED = {each.key: each for each in (FIND, FETCH)}
SEARCH = step("FIND /rooms", "found", {"city": given("city")})


def messages(*steps: Any, output: Any = None, required: tuple[str, ...] = ("city",), **fields: Any) -> list[str]:
    made = compose(
        "FIND", "/offer", "r", properties={"city": TEXT, "n": {"type": "integer"}}, required=required, output=output
    )
    found = check_values(made, recipe(*steps, **fields), CALLED)
    return [f"{one.rule} {one.severity[0]}{one.message.partition('recipe ')[2][3:]}" for one in found]


def fetch(source: Source) -> Any:
    return step("FETCH /rooms/{id}", "room", {"id": source})


ROOMS = "found.rooms"


def first(**fields: Any) -> Source:
    return captured(ROOMS, pick="first", get="id", **fields)


@rows(
    "source",
    first(),
    captured(ROOMS, where=(Condition(left=item("price"), op="lt", right=given("n")),), pick="only", get="id"),
    first(sort=constant("-price"), limit=given("n")),
    captured(ROOMS, get="id", reduce="max"),
    constant("a"),
    replace(constant(3), form="text"),
    captured("found.next"),
)
def test_values_that_fit(source: Source) -> None:
    assert messages(SEARCH, fetch(source)) == []


BY_CITY = (Condition(left=item("price"), right=given("city")),)


@rows(
    "source, rule, message",
    (given("town"), "H743", ": there is no field 'town'; there are city, n"),
    (captured("rooms"), "H743", ": no earlier step captures 'rooms'; captured so far: found"),
    (captured("found.beds"), "H743", ": there is no field 'beds'; there are next, rooms"),
    (captured(ROOMS, pick="first", get="name"), "H743", ": there is no field 'name'; there are id, price"),
    (item("id"), "H743", ": there is no element of a list here"),
    (given("n"), "H744", ": the value is an integer, and a string is wanted"),
    (constant(3), "H744", ": the value is an integer, and a string is wanted"),
    (replace(given("city"), form="integer"), "H744", ": the value is an integer, and a string is wanted"),
    (captured("found.rooms.id"), "H744", ": the value is an array, and a string is wanted"),
    (first(sort=constant("size")), "H743", ", sort: there is no field 'size'; there are id, price"),
    (captured(ROOMS, get="id", reduce="sum"), "H744", ": its elements are string, and sum wants numbers"),
    (captured(ROOMS, reduce="count"), "H744", ": the value is an integer, and a string is wanted"),
    (first(limit=given("city")), "H744", ": an order or a limit is string"),
    (first(where=BY_CITY), "H744", ", condition: number is compared with string, which never holds"),
)
def test_values_that_do_not_exist_or_do_not_fit(source: Source, rule: str, message: str) -> None:
    assert messages(SEARCH, fetch(source))[0] == f"{rule} e, step 2, 'id'{message}"


def test_required_parameters_get_a_value_and_steps_of_one_group_do_not_see_each_other() -> None:
    assert messages(step("FIND /rooms")) == ["H744 e, step 1: the required parameter 'city' gets no value"]
    [message] = messages(step("FIND /rooms", take={"city": given("city"), "town": given("city")}))
    assert message == "H744 e, step 1, 'town': the endpoint has no such parameter"
    grouped = (step("FIND /rooms", "found", {"city": given("city")}, group="g"),)
    later = step("FETCH /rooms/{id}", take={"id": captured("found.next")}, group="g")
    [message] = messages(*grouped, later)
    assert "no earlier step captures 'found'" in message


def test_a_value_that_the_caller_may_omit_is_doubtful_for_a_required_parameter() -> None:
    [message] = messages(SEARCH, required=())
    assert message == "H744 w, step 1, 'city': it is required, but the caller may omit 'city'"
    guarded = step("FIND /rooms", take={"city": given("city")}, when=(Condition(left=given("city"), op="present"),))
    assert messages(guarded, required=()) == []
    assert messages(step("FIND /rooms", take={"city": given("city", default="Riga")}), required=()) == []


def test_each_element_of_a_list_is_known() -> None:
    each = step("FETCH /rooms/{id}", "views", {"id": item("id")}, for_each=captured(ROOMS))
    output = {"prices": captured("views.item.price"), "ids": captured("views.output.id")}
    assert messages(SEARCH, each, output=None) == []
    wanted = {"type": "object", "properties": {"ids": {"type": "array", "items": TEXT}}, "required": ["ids"]}
    made = compose("FIND", "/offer", "r", properties={"city": TEXT}, required=("city",), output=wanted)
    assert list(check_values(made, recipe(SEARCH, each, output=output), CALLED)) == []
    [message] = messages(SEARCH, step("FETCH /rooms/{id}", take={"id": item()}, for_each=captured("found.next")))
    assert message == "H744 e, step 2: for_each is string, and a list is wanted"


def test_pages_need_their_parameter_and_fields_and_a_compensation_may_use_the_output() -> None:
    paging = Paging(parameter="cursor", cursor="next", items="rooms")
    assert messages(step("FIND /rooms", take={"city": given("city")}, pages=paging)) == []
    wrong = Paging(parameter="page", cursor="after", items="rooms")
    found = messages(step("FIND /rooms", take={"city": given("city")}, pages=wrong))
    assert [message[:4] for message in found] == ["H744", "H743"]
    numbered = Paging(parameter="cursor", counts="pages", items="rooms")
    assert messages(step("FIND /rooms", take={"city": given("city")}, pages=numbered)) == []
    [message] = messages(step("FIND /rooms", take={"city": given("city")}, pages=replace(numbered, counts="")))
    assert message == "H743 e, step 1, pages: `cursor` or `counts` must say how the next page is asked for"
    undo = Compensation(method="FETCH", path="/rooms/{id}", input={"id": captured("found.next")})
    assert messages(step("FIND /rooms", "found", {"city": given("city")}, compensate=undo)) == []
    empty = Compensation(method="FETCH", path="/rooms/{id}")
    [message] = messages(step("FIND /rooms", "found", {"city": given("city")}, compensate=empty))
    assert message == "H744 e, the compensation of step 1: the required parameter 'id' gets no value"


@rows(
    "fields, problem",
    ({"output": {"price": captured("room.price")}}, None),
    ({"output": {"price": captured("room.id")}}, "has 'price', which is a string, and a number is wanted"),
    ({"output": {"id": captured("room.id")}}, "has no 'price', which is required"),
    ({}, None),
    ({"aggregation": "merge"}, None),
    ({"aggregation": "list"}, "has no 'price', which is required"),
)
def test_the_result_fits_the_output_schema(fields: Any, problem: str | None) -> None:
    output = {"type": "object", "properties": {"price": COMPOSITIONS_NUMBER}, "required": ["price"]}
    made = compose("FIND", "/offer", "r", properties={"city": TEXT}, required=("city",), output=output)
    found = list(check_values(made, recipe(SEARCH, fetch(captured("found.next")), **fields), CALLED))
    assert [(one.rule, one.message.partition("the value ")[2]) for one in found] == (
        [] if problem is None else [("H748", problem)]
    )


def test_a_new_object_may_be_made_of_several_values() -> None:
    nested = Source(kind="constant", value={}, select={"id": item("id"), "city": given("city")})
    output = {"rows": captured(ROOMS, select={"room": nested})}
    row = {"type": "object", "properties": {"room": {"type": "object", "properties": {"id": COMPOSITIONS_NUMBER}}}}
    wanted = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    made = compose("FIND", "/offer", "r", properties={"city": TEXT}, required=("city",), output=wanted)
    [finding] = check_values(made, recipe(SEARCH, output=output), CALLED)
    assert "a string, and a number is wanted" in finding.message


def test_result_that_may_be_null_where_it_is_required_is_warned_of() -> None:
    output = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    fetch_note = make_endpoint(
        "FETCH", "/notes", echo, output={**output, "properties": {"note": {"type": ["string", "null"]}}}
    )
    made = compose("FIND", "/offer", "r", properties={}, required=(), output=output)
    [found] = check_values(made, recipe(step("FETCH /notes", "found", {})), {fetch_note.key: fetch_note})
    assert (found.rule, found.severity) == ("H748", "warning")
    assert found.message.endswith("its result: note may be null, but is required")
    assert find_gaps(made, recipe(step("FETCH /notes", "found", {})), {fetch_note.key: fetch_note}) == [("note",)]
    assert write_path(("rows", "[]", "note")) == "rows[].note"


VALUE_KIND_ROOMS = {
    "type": "object",
    "properties": {
        "rooms": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "beds": {"type": "array", "items": {"type": "integer"}}},
                "required": ["id"],
            },
        },
        "open": {"type": "object"},
    },
    "required": ["rooms"],
}


def kind(schema: dict[str, Any]) -> ValueKind:
    return ValueKind(members=members_of(schema))


@rows(
    "path, types",
    ("rooms", {"array"}),
    ("rooms.id", {"array"}),
    ("rooms.beds", {"array"}),
    ("open", {"object"}),
    ("open.anything", set()),
)
def test_a_path_leads_to_a_type(path: str, types: set[str]) -> None:
    found = kind(VALUE_KIND_ROOMS).follow(path)
    assert isinstance(found, ValueKind)
    assert found.types == types


def test_elements_of_a_list_have_their_own_kind_and_omittable_fields_are_optional() -> None:
    found = kind(VALUE_KIND_ROOMS).follow("rooms.beds")
    assert isinstance(found, ValueKind)
    assert found.element.types == {"integer"}
    assert ValueKind(constant=["a"]).element.types == {"string"}
    assert ValueKind(constant=[]).element.types == set()
    found = [kind(VALUE_KIND_ROOMS).follow(name) for name in ("rooms", "open")]
    assert [one.is_optional for one in found if isinstance(one, ValueKind)] == [False, True]


@rows(
    "path, text",
    ("room", "there is no field 'room'; there are open, rooms"),
    ("rooms.name", "there is no field 'name'; there are beds, id"),
    ("rooms.id.x", "'x' is not in a value of type string"),
)
def test_a_path_that_leads_nowhere_is_told(path: str, text: str) -> None:
    assert kind(VALUE_KIND_ROOMS).follow(path) == text


def text(schema: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return list(misfits(kind(schema), members_of(wanted)))


STRING, NUMBER, INTEGER = ({"type": name} for name in ("string", "number", "integer"))
DATE, UUID = ({"type": "string", "format": name} for name in ("date", "uuid"))
STRINGS, INTEGERS = ({"type": "array", "items": items} for items in (STRING, INTEGER))


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@rows(
    "schema, wanted",
    (STRING, STRING),
    (NUMBER, INTEGER),
    (INTEGER, NUMBER),
    ({}, STRING),
    (STRING, {}),
    ({"type": ["string", "null"]}, STRING),
    (STRING, DATE),
    (STRING, {"enum": ["a"]}),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}),
    ({"anyOf": [STRING, DATE]}, UUID),
    (fields(a=STRING), {"type": "object", "anyOf": [{**fields(b=STRING), "required": ["b"]}, {"required": ["a"]}]}),
)
def test_values_that_may_fit(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert text(schema, wanted) == []


@rows(
    "schema, wanted, reason",
    (STRING, INTEGER, "is a string, and an integer is wanted"),
    ({"type": "array"}, STRING, "is an array, and a string is wanted"),
    (DATE, UUID, "has the format date, and uuid is wanted"),
    ({"enum": ["a"]}, {"enum": ["b"]}, "is one of a, and one of b is wanted"),
    (STRINGS, INTEGERS, "has elements of which each is a string, and an integer is wanted"),
    (fields(a=STRING), {**fields(a=STRING, b=STRING), "required": ["a", "b"]}, "has no 'b', which is required"),
    (fields(a=STRING), fields(a=INTEGER), "has 'a', which is a string, and an integer is wanted"),
)
def test_values_that_cannot_fit(schema: dict[str, Any], wanted: dict[str, Any], reason: str) -> None:
    assert text(schema, wanted) == [reason]


def test_constants_are_compared_with_listed_values_and_recursive_schemas_end() -> None:
    wanted = members_of({"enum": ["a", "b"]})
    assert list(misfits(ValueKind(constant="a"), wanted)) == []
    assert list(misfits(ValueKind(constant="c"), wanted)) == ["is 'c', and one of a, b is wanted"]
    assert list(misfits(ValueKind(constant=3), members_of(STRING))) == ["is an integer, and a string is wanted"]
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": STRING}}
    other = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": INTEGER}}
    assert len(text(tree, other)) > 1


def test_required_values_that_may_be_null_are_found_at_any_depth() -> None:
    def rows(kind: Any, *required: str) -> dict[str, Any]:
        row = {"type": "object", "properties": {"memo": {"type": kind}}, "required": list(required)}
        return {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}

    may_lack = kind(rows(["string", "null"]))
    assert list(gaps(may_lack, members_of(rows("string", "memo")))) == [("rows", "[]", "memo")]
    assert list(gaps(may_lack, members_of(rows("string")))) == []
    assert list(gaps(may_lack, members_of(rows(["null", "string"], "memo")))) == []
    assert list(gaps(kind(rows("string")), members_of(rows("string", "memo")))) == []
