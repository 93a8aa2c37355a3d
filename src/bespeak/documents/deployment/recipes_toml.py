"""agtp-recipes.toml: the named compositions of a server (AGTP-API 12.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import DUPLICATE
from bespeak.text.reading.table import Table, is_integer
from bespeak.text.reading.text_file import read_text, toml_table
from bespeak.text.source.span import Location

_AGGREGATIONS: Final = ("last", "merge", "list")
_SOURCES: Final = ("proposal", "constant", "previous_step")
_PATTERN: Final = ("name_exact", "name_regex", "category", "path_exact", "path_regex")


def read_recipes(path: Path) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    """Read the recipes in a file and collect findings."""
    text = read_text(path)
    return ((), [text]) if isinstance(text, Diagnostic) else parse_recipes(text, str(path))


def parse_recipes(text: str, file: str) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    """Parse the recipes in a text; return none if any finding is an error."""
    root = toml_table(text, file)
    return ((), [root]) if isinstance(root, Diagnostic) else recipes_of(root, file)


def recipes_of(root: Table, file: str) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    """Read the recipes in the root table of a document."""
    recipes: dict[str, Recipe] = {}
    for entry in root.tables("recipe"):
        recipe = _read_recipe(entry, file)
        if recipe.name in recipes:
            root.findings.error(DUPLICATE, f"the recipe {brief(recipe.name)} is declared twice", entry.pointer("name"))
        recipes[recipe.name] = recipe
    root.finish()
    return () if root.findings.failed else tuple(recipes.values()), root.findings.found


def _read_recipe(entry: Table, file: str) -> Recipe:
    name = entry.need_text("name")
    steps = entry.tables("steps")
    if not entry.value("steps"):
        entry.missing("steps", "A recipe has at least one [[recipe.steps]].")
    aggregation = entry.table("aggregation")
    mode = aggregation.choice("mode", _AGGREGATIONS) if aggregation else None
    if aggregation:
        aggregation.finish()
    version = entry.value("version")
    recipe = Recipe(
        name=name,
        steps=tuple(_read_step(step) for step in steps),
        description=entry.text("description") or "",
        version=str(version) if is_integer(version) else entry.text("version") or "1",
        pattern=_read_pattern(entry.table("pattern")),
        aggregation=mode or "last",
        location=Location(file),
    )
    entry.finish()
    return recipe


def _read_pattern(block: Table | None) -> dict[str, Any]:
    if block is None:
        return {}
    pattern: dict[str, Any] = {key: value for key in _PATTERN if (value := block.text(key)) is not None}
    if block.has("has_parameters"):
        pattern["has_parameters"] = block.texts("has_parameters")
    block.finish()
    return pattern


def _read_step(step: Table) -> RecipeStep:
    parameters = step.table("parameters")
    read = RecipeStep(
        method=step.need_text("method").upper(),
        path=step.text("path"),
        input=_read_parameters(parameters) if parameters else {},
        output=step.text("capture_as"),
    )
    step.finish()
    return read


def _read_parameters(block: Table) -> dict[str, Any]:
    sources = {name: block.table(name) for name in block.data}
    return {name: _read_source(source) for name, source in sources.items() if source is not None}


def _read_source(source: Table) -> dict[str, Any]:
    """Read the source of a parameter's value: the caller, the file, or an earlier step."""
    for key in ("kind", "value"):
        if not source.has(key):
            source.missing(key)
    source.check_json("value")
    read = {"kind": source.choice("kind", _SOURCES), "value": source.value("value")}
    source.finish()
    return read
