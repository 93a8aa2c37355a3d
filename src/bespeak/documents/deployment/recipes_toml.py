"""agtp-recipes.toml: the named compositions of a server (AGTP-API 12.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bespeak.contract.recipe import Recipe
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.rules import DUPLICATE
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table
from bespeak.text.source.span import Location


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
        recipe = replace(read_settings(Recipe, entry), location=Location(file))
        if recipe.name in recipes:
            root.findings.error(DUPLICATE, f"the recipe {brief(recipe.name)} is declared twice", entry.pointer("name"))
        recipes[recipe.name] = recipe
    root.finish()
    return () if root.findings.failed else tuple(recipes.values()), root.findings.found
