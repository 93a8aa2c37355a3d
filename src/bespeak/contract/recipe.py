"""Recipes: named compositions of endpoints (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.text.reading.setting import VERB, setting
from bespeak.text.reading.settings import read_settings, read_values
from bespeak.text.reading.table import Table, is_integer
from bespeak.text.source.span import Location

_SOURCES: Final = ("proposal", "constant", "previous_step")


def _read_parameters(step: Table, key: str) -> dict[str, Any]:
    block = step.table(key)
    sources = {name: block.table(name) for name in block.data} if block else {}
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


def _read_version(recipe: Table, key: str) -> str | None:
    version = recipe.value(key)
    return str(version) if is_integer(version) else recipe.text(key)


def _read_pattern(recipe: Table, key: str) -> dict[str, Any]:
    block = recipe.table(key)
    if block is None:
        return {}
    pattern = read_values(RecipePattern, block)
    block.finish()
    return pattern


def _read_aggregation(recipe: Table, key: str) -> str | None:
    block = recipe.table(key)
    return read_settings(Aggregation, block).mode if block else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStep:
    """One call of a recipe."""

    method: str = setting("", "The verb of the step.", required=True, format=VERB, parse=str.upper)
    path: str | None = setting(None, "The path of the step.")
    input: Mapping[str, Any] = setting({}, "The input of the step.", key="parameters", read=_read_parameters)
    output: str | None = setting(None, "The name of the result for later steps.", key="capture_as")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipePattern:
    """The proposals it answers."""

    name_exact: str = setting("", "The verb.", format=VERB)
    name_regex: str = setting("", "An expression the verb matches.")
    category: str = setting("", "A category of the catalog.")
    path_exact: str = setting("", "The path.")
    path_regex: str = setting("", "An expression the path matches.")
    has_parameters: tuple[str, ...] = setting((), "Parameters the proposal has.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """How the results are combined."""

    mode: str = setting("last", "The way.", choices=("last", "merge", "list"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One composition: a named, ordered list of steps."""

    name: str = setting("", "Its name.", required=True)
    steps: tuple[RecipeStep, ...] = setting(
        (),
        "What it does, in order.",
        kind="tables",
        of=RecipeStep,
        required=True,
        advice="A recipe has at least one [[recipe.steps]].",
    )
    description: str = setting("", "What it does, for people.")
    version: str = setting("1", "Its version.", read=_read_version)
    pattern: Mapping[str, Any] = setting(
        {}, "The proposals it answers.", kind="table", of=RecipePattern, read=_read_pattern
    )
    """Only the keys that are written."""
    aggregation: str = setting(
        "last", "How the results are combined.", kind="table", of=Aggregation, read=_read_aggregation
    )
    """The `last` result, a `merge` of all, or a `list`."""
    location: Location | None = None
