"""Recipes: what a composition does is read and written without loss."""

from __future__ import annotations

from typing import Any

from tests.cases import rows

from bespeak.contract.recipe import (
    Compensation,
    Condition,
    Paging,
    Recipe,
    RecipeStep,
    Retry,
    Source,
    constant,
    read_source,
    sources_in,
)
from bespeak.documents.deployment.endpoint_toml import recipes_of
from bespeak.documents.toml_text import toml_text
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.table import Findings, Table
from bespeak.text.reading.text_file import toml_table
from bespeak.text.source.tree import Location

HOLD = RecipeStep(
    method="HOLD",
    path="/room/{room_id}",
    input={"room_id": Source(kind="item", value="room_id"), "nights": constant(2)},
    output="held",
    group="holds",
    when=(Condition(left=Source(kind="proposal", value="rooms"), op="present"),),
    for_each=Source(kind="previous_step", value="rooms.items"),
    max_items=5,
    on_failure="skip",
    compensate=Compensation(
        method="RELEASE", path="/room/{room_id}", input={"room_id": Source(kind="previous_step", value="held.item.id")}
    ),
)
LIST = RecipeStep(
    method="FIND", path="/rooms", output="rooms", pages=Paging(parameter="cursor", cursor="next", items="items")
)
NUMBERED = RecipeStep(
    method="FIND",
    path="/halls",
    pages=Paging(parameter="page", counts="pages", items="items", most=3),
    retry=Retry(attempts=3, delay=0.5),
    timeout=2.0,
)
RECIPE = Recipe(
    name="hold-all",
    steps=(LIST, NUMBERED, HOLD),
    description="Holds every room.",
    version="2",
    pattern={"name_exact": "HOLD"},
    output={"held": Source(kind="previous_step", value="held.output.hold_id", form="text")},
    timeout_seconds=5.0,
    location=Location("r.toml"),
)


def test_recipe_that_is_written_is_read_again_and_a_step_without_a_path_calls_the_root() -> None:
    root = toml_table(toml_text({"recipe": [RECIPE.to_json()]}), "r.toml")
    assert not isinstance(root, Diagnostic)
    assert recipes_of(root, "r.toml") == ((RECIPE,), [])
    assert RecipeStep(method="SUMMARIZE").endpoint == ("SUMMARIZE", "/")


def test_steps_may_be_written_with_the_words_of_chain() -> None:
    text = """
    [[recipe]]
    name = "trip"
    [[recipe.steps]]
    method = "FIND"
    path = "/rooms"
    name = "found"
    parameters = { city = { "$from" = "input.city" } }
    [[recipe.steps]]
    [[recipe.steps.together]]
    method = "HOLD"
    path = "/room"
    parameters = { id = { "$from" = "found.rooms[0].id" } }
    undo = { method = "RELEASE", path = "/room" }
    [[recipe.steps.together]]
    method = "ORDER"
    path = "/taxi"
    retry = { attempts = 3 }
    timeout = 2.5
    [[recipe.steps]]
    method = "SEND"
    path = "/bill"
    compensate = { method = "CANCEL", path = "/bill" }
    """
    root = toml_table(text, "r.toml")
    assert not isinstance(root, Diagnostic)
    (recipe,), findings = recipes_of(root, "r.toml")
    assert [(finding.rule, finding.message.partition(",")[0]) for finding in findings] == [
        ("D107", "`compensate` is read as `undo`")
    ]
    find, hold, order, send = recipe.steps
    assert (find.output, find.input) == ("found", {"city": Source(kind="proposal", value="city")})
    assert hold.input == {"id": Source(kind="previous_step", value="found.rooms", pick="first", get="id")}
    assert find.group is None is send.group
    assert hold.group == order.group
    assert hold.compensate == Compensation(method="RELEASE", path="/room")
    assert (order.retry, order.timeout) == (Retry(attempts=3), 2.5)
    assert send.compensate == Compensation(method="CANCEL", path="/bill")
    assert "undo" in send.to_json()


@rows(
    "step, rule",
    ({"together": []}, "D103"),
    ({"together": [{"method": "HOLD"}], "path": "/room"}, "D105"),
    ({"together": [{"together": [{"method": "HOLD"}]}]}, "D105"),
    ({"method": "HOLD", "retry": {"delay": 1}}, "D103"),
    ({"method": "HOLD", "retry": {"attempts": 21}}, "D104"),
    ({"method": "HOLD", "timeout": 0}, "D104"),
    ({"method": "HOLD", "undo": {"method": "RELEASE"}, "compensate": {}}, "D105"),
)
def test_a_mistake_in_a_step_is_reported(step: Any, rule: str) -> None:
    root = toml_table(toml_text({"recipe": [{"name": "r", "steps": [step]}]}), "r.toml")
    assert not isinstance(root, Diagnostic)
    findings = recipes_of(root, "r.toml")[1]
    assert rule in [finding.rule for finding in findings]


def read(data: Any) -> tuple[Source | None, list[str]]:
    table = Table({"from": data}, "", Findings(lambda _: Location("r.toml")))
    source = read_source(table, "from")
    return source, [finding.rule for finding in table.findings.found]


CHEAPEST = Source(
    kind="previous_step",
    value="rooms.items",
    where=(
        Condition(left=Source(kind="item", value="price"), op="lte", right=Source(kind="proposal", value="max_price")),
        Condition(left=Source(kind="item", value="closed"), op="absent"),
    ),
    sort=constant("-price"),
    limit=Source(kind="proposal", value="limit", default=10),
    select={"room": Source(kind="item", value="room_id"), "town": constant("Riga")},
)


def test_source_that_is_written_is_read_again_also_with_plain_values() -> None:
    assert read(CHEAPEST.to_json()) == (CHEAPEST, [])
    source, findings = read({"kind": "proposal", "value": "rooms", "sort": ["price"], "limit": 3, "pick": "first"})
    assert findings == []
    assert source == Source(kind="proposal", value="rooms", sort=constant(["price"]), limit=constant(3), pick="first")


given = Source(kind="proposal", value="most")


@rows(
    "data, source",
    ({"$from": "input"}, Source(kind="proposal")),
    ({"$from": "item.id"}, Source(kind="item", value="id")),
    ({"$from": "found.rooms", "limit": 2}, Source(kind="previous_step", value="found.rooms", limit=constant(2))),
    ({"$from": "found.rooms[0]"}, Source(kind="previous_step", value="found.rooms", pick="first")),
    (
        {"$from": "found", "where": [{"field": "price", "op": "lt", "value": {"$from": "input.most"}}]},
        Source(
            kind="previous_step",
            value="found",
            where=(Condition(left=Source(kind="item", value="price"), op="lt", right=given),),
        ),
    ),
)
def test_reference_of_a_chain_is_a_source(data: Any, source: Source) -> None:
    assert read(data) == (source, [])


@rows(
    "data, rule",
    ({"kind": "guess", "value": "a"}, "D106"),
    ({"kind": "proposal"}, "D103"),
    ({"kind": "proposal", "value": 1}, "D104"),
    ({"kind": "proposal", "value": "a", "pick": "best"}, "D106"),
    ({"kind": "proposal", "value": "a", "limit": True}, "D104"),
    ({"kind": "proposal", "value": "a", "where": [{"op": "eq", "value": {"kind": "constant", "value": 1}}]}, "D103"),
    ({"kind": "proposal", "value": "a", "where": [{"field": "b", "op": "lt"}]}, "D103"),
    ({"kind": "proposal", "value": "a", "wher": []}, "D105"),
    ({"$from": 1}, "D104"),
    ({"$from": ""}, "D104"),
    ({"$from": "found.rooms[1].id"}, "D104"),
    ({"$from": "found.rooms[0]id"}, "D104"),
    ({"$from": "found", "kind": "proposal"}, "D104"),
)
def test_a_mistake_in_a_source_is_reported(data: Any, rule: str) -> None:
    assert rule in read(data)[1]


def test_sources_inside_each_other_are_bounded_and_listed() -> None:
    data: dict[str, Any] = {"kind": "item", "value": "a"}
    for _ in range(50):
        data = {"kind": "item", "value": "a", "select": {"b": data}}
    assert "D104" in read(data)[1]
    listed = [source.value for source in sources_in(CHEAPEST)]
    assert listed == ["rooms.items", "price", "max_price", "closed", "-price", "limit", "room_id", "Riga"]
