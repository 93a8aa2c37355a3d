"""Recipes: every step in order, and every error with its location."""

from __future__ import annotations

from pathlib import Path

from tests.cases import rows

from bespeak.contract.recipe import Recipe, RecipeStep, constant
from bespeak.documents.deployment.endpoint_toml import read_recipes, recipes_of
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import toml_table
from bespeak.text.source.tree import Location

TEXT = """\
[[recipe]]
name = "r"
[[recipe.steps]]
method = "query"
path = "/rooms"
capture_as = "rooms"
parameters = { intent = { kind = "constant", value = "all" } }
"""


def parse_recipes(text: str, file: str) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    root = toml_table(text, file)
    return ((), [root]) if isinstance(root, Diagnostic) else recipes_of(root, file)


def test_recipes_of_a_file_are_read() -> None:
    recipes, findings = parse_recipes(TEXT, "r.toml")
    assert findings == []
    step = RecipeStep(method="QUERY", path="/rooms", input={"intent": constant("all")}, output="rooms")
    assert recipes == (Recipe(name="r", steps=(step,), location=Location("r.toml")),)
    assert parse_recipes("", "r.toml") == ((), [])


@rows(
    "old, new, rule",
    ('name = "r"\n', "", "D103"),
    ('method = "query"\n', "", "D103"),
    ('"constant"', '"guess"', "D106"),
    ('{ kind = "constant", value = "all" }', '"all"', "D104"),
    (', value = "all"', "", "D103"),
    ('"all"', "2026-01-01", "D110"),
    (
        '[[recipe.steps]]\nmethod = "query"',
        '[recipe.aggregation]\nmode = "first"\n[[recipe.steps]]\nmethod = "q"',
        "D106",
    ),
    ("[[recipe]]", "[recipe]", "D104"),
)
def test_a_mistake_is_an_error_and_no_recipe_is_used(old: str, new: str, rule: str) -> None:
    recipes, findings = parse_recipes(TEXT.replace(old, new), "r.toml")
    assert recipes == ()
    assert findings[0].rule == rule
    assert findings[0].location is not None


@rows(
    "text, rule, pointer, advice",
    ('[[recipe]]\nname = "r"\n', "D103", "/recipe/0", "A recipe has at least one [[recipe.steps]]."),
    (TEXT + TEXT, "D109", "/recipe/1/name", ""),
    (TEXT.replace("capture_as", "capture"), "D105", "/recipe/0/steps/0/capture", "Did you mean `capture_as`?"),
)
def test_missing_repeated_and_unknown_parts_are_errors(text: str, rule: str, pointer: str, advice: str) -> None:
    recipes, (finding,) = parse_recipes(text, "r.toml")
    assert recipes == ()
    assert (finding.rule, finding.pointer, finding.help) == (rule, pointer, advice)


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    recipes, (finding,) = read_recipes(tmp_path)
    assert recipes == ()
    assert finding.rule == "D101"
