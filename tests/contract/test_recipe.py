"""Recipes: what a composition does is read and written without loss."""

from __future__ import annotations

from bespeak.contract.recipe import Compensation, Condition, Paging, Recipe, RecipeStep, Source, constant
from bespeak.documents.deployment.endpoint_toml import parse_recipes
from bespeak.documents.toml_text import toml_text
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
    method="FIND", path="/halls", pages=Paging(parameter="page", counts="pages", items="items", most=3)
)
RECIPE = Recipe(
    name="hold-all",
    steps=(LIST, NUMBERED, HOLD),
    description="Holds every room.",
    version="2",
    pattern={"name_exact": "HOLD"},
    output={"held": Source(kind="previous_step", value="held.output.hold_id")},
    timeout_seconds=5.0,
    location=Location("r.toml"),
)


def test_a_recipe_that_is_written_is_read_again() -> None:
    assert parse_recipes(toml_text({"recipe": [RECIPE.to_json()]}), "r.toml") == ((RECIPE,), [])


def test_a_step_without_a_path_calls_the_root() -> None:
    assert RecipeStep(method="SUMMARIZE").endpoint == ("SUMMARIZE", "/")
