"""Recipes: named compositions of endpoints (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bespeak.contract.source import Condition, Source, read_conditions, read_source, read_sources
from bespeak.text.reading.setting import VERB, optional_table, setting
from bespeak.text.reading.settings import read_settings, read_values
from bespeak.text.reading.table import Table, is_integer
from bespeak.text.source.span import Location


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
class Paging:
    """How to read all pages of a list: each further call sends what the answer before it says, or the next number."""

    parameter: str = setting("", "The parameter that takes the cursor or the number.", required=True)
    cursor: str = setting("", "The path of the next cursor in an answer; no cursor there, or false, ends the list.")
    counts: str = setting(
        "", "What the parameter counts, if it takes a number instead of a cursor.", choices=("pages", "elements")
    )
    """The first call sends no number. An empty page ends the list."""
    items: str = setting("", "The path of the list in an answer.", required=True)
    most: int = setting(20, "The most pages of a list; more make the composition fail.", bounds=(1, 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """The call that undoes a step after a later one failed."""

    method: str = setting("", "The verb of the call.", required=True, format=VERB, parse=str.upper)
    path: str = setting("", "The path of the call.", required=True)
    input: Mapping[str, Source] = setting(
        {}, "The input of the call; the output of the step itself may be a source.", key="parameters", read=read_sources
    )

    @property
    def endpoint(self) -> tuple[str, str]:
        """Method and path of the endpoint that the call goes to."""
        return self.method, self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStep:
    """One call of a recipe, or one for each element of a list."""

    method: str = setting("", "The verb of the step.", required=True, format=VERB, parse=str.upper)
    path: str | None = setting(None, "The path of the endpoint, with its `{parameters}`. Without it: `/`.")
    input: Mapping[str, Source] = setting(
        {}, "The input of the step, a source for each field.", key="parameters", read=read_sources
    )
    output: str | None = setting(None, "The name of the result for later steps.", key="capture_as")
    group: str | None = setting(None, "Neighbouring steps of one group run at the same time.")
    when: tuple[Condition, ...] = setting(
        (), "Conditions without which the step is skipped.", kind="tables", read=read_conditions
    )
    for_each: Source | None = setting(
        None,
        "A list: the step runs once for each element, which is the source `item`. It captures a list of objects with "
        "the `item` and the `output` of each.",
        kind="map",
        read=read_source,
    )
    max_items: int = setting(100, "The most elements; more make the composition fail.", bounds=(1, 10_000))
    on_failure: str = setting(
        "fail",
        "What a failed step or element does: it fails the composition, or is left out.",
        choices=("fail", "skip"),
    )
    pages: Paging | None = optional_table(Paging)
    compensate: Compensation | None = optional_table(Compensation)

    @property
    def endpoint(self) -> tuple[str, str]:
        """Method and path of the endpoint that the step calls."""
        return self.method, self.path or "/"

    def to_json(self) -> dict[str, Any]:
        """Write the table of a recipe file."""
        data: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "capture_as": self.output,
            "group": self.group,
            "when": [condition.to_json() for condition in self.when] or None,
            "parameters": _write_sources(self.input),
            "for_each": None if self.for_each is None else self.for_each.to_json(),
        }
        if self.for_each is not None:
            data["max_items"] = self.max_items
        if self.for_each is not None or self.on_failure != "fail":
            data["on_failure"] = self.on_failure
        if self.pages is not None:
            data["pages"] = {name: value for name, value in asdict(self.pages).items() if value != ""}
        if self.compensate is not None:
            undone = self.compensate
            data["compensate"] = {
                "method": undone.method,
                "path": undone.path,
                "parameters": _write_sources(undone.input) or {},
            }
        return {name: value for name, value in data.items() if value is not None}


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
    output: Mapping[str, Source] = setting(
        {}, "The fields of the result. They replace the aggregation.", kind="map", read=read_sources
    )
    timeout_seconds: float = setting(30.0, "Seconds for all steps together.", kind="seconds", bounds=(0.001, 3600))
    location: Location | None = None

    @property
    def calls(self) -> tuple[tuple[str, str], ...]:
        """Endpoints of the steps, then those that undo them, by method and path."""
        undone = (step.compensate.endpoint for step in self.steps if step.compensate is not None)
        return (*(step.endpoint for step in self.steps), *undone)

    def to_json(self) -> dict[str, Any]:
        """Write the `[[recipe]]` table of a file."""
        data: dict[str, Any] = {
            "name": self.name,
            "description": self.description or None,
            "version": self.version,
            "timeout_seconds": self.timeout_seconds,
            "pattern": dict(self.pattern) or None,
            "aggregation": None if self.output else {"mode": self.aggregation},
            "output": _write_sources(self.output),
            "steps": [step.to_json() for step in self.steps],
        }
        return {name: value for name, value in data.items() if value is not None}


def _write_sources(sources: Mapping[str, Source]) -> dict[str, Any] | None:
    return {name: source.to_json() for name, source in sources.items()} or None
