"""Recipes: named compositions of endpoints, and where each step takes its values from (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from bespeak.text.reading.settings import VERB, optional_table, read_settings, read_values, setting
from bespeak.text.reading.table import Table, is_integer
from bespeak.text.source.tree import Location

SOURCES: Final = ("proposal", "constant", "previous_step", "item")  # the input, the file, an output, an element
COMPARISONS: Final = ("eq", "ne", "lt", "lte", "gt", "gte", "contains", "in", "present", "absent")
"""Operators of conditions. Numbers, and dates and times in ISO 8601, are compared by value, other texts by characters.

`contains` finds a text in a text without regard to case, or a member of a list; `in` is its inverse for lists.
"""
FROM: Final = "$from"  # member whose value is a path, in place of `kind` and `value`, as steps of CHAIN write it
PICKS: Final = ("all", "first", "only")
"""Which elements of a list are taken. `first` and `only` make the composition fail if there is none, `only` also if
there are several.
"""
FORMS: Final = ("text", "integer")
"""What a value is converted to: some endpoints write the key of a thing as a text, others as an integer."""
REDUCTIONS: Final = ("count", "sum", "min", "max", "average")
"""What is made of a list. Elements without a value do not count; of none there is only a count and a sum."""
_DEEPEST: Final = 8  # maximum number of sources inside each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A comparison. One whose right side has no value, such as an optional input that was not sent, is met."""

    left: Source  # in `where`, a source of kind `item` is the element that is judged
    op: str = "eq"
    right: Source | None = None
    """None for `present` and `absent`. Its `item` is never the judged element but the one around the list, that of a
    `select` or `for_each`: this joins two lists.
    """

    def to_json(self) -> dict[str, Any]:
        short = self.left.kind == "item" and self.left == Source(kind="item", value=self.left.value)
        left = {"field": self.left.value} if short else {"source": self.left.to_json()}
        right = {} if self.right is None else {"value": self.right.to_json()}
        return {**left, "op": self.op, **right}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A value, and in this order: its `default`, rows to keep, their order, how many, which, form, shape or sum."""

    kind: str
    value: Any = ""
    """A constant; else a dotted path such as `orders.items`, for `previous_step` beginning with a captured name.

    A path that meets a list continues in each element; lists inside lists become one. The empty path is the whole
    value.
    """
    default: Any = None  # used if there is no value; None for none, so that the parameter is omitted
    where: tuple[Condition, ...] = ()
    sort: Source | None = None  # gives a field, `-field` for descending order, or a list of these
    limit: Source | None = None
    pick: str = "all"
    get: str = ""  # path inside the picked element, or inside each
    form: str = ""  # one of FORMS; empty to keep the type
    reduce: str = ""  # one of REDUCTIONS; empty to keep the list
    select: Mapping[str, Source] | None = None
    """Shape of the picked element, or of each: its new fields. None to keep it as it is.

    In it, `item` is the element. Of a value that is not a list, it is the shape of the value. `select` on a constant
    `{}` makes an object, in which `item` is what it is around it.
    """

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind, "value": self.value}
        for name, key in (("default", "default"), ("get", "get"), ("form", "as"), ("reduce", "reduce")):
            if getattr(self, name):
                data[key] = getattr(self, name)
        if self.where:
            data["where"] = [condition.to_json() for condition in self.where]
        for name in ("sort", "limit"):
            source = getattr(self, name)
            if source is not None:
                data[name] = source.value if source == constant(source.value) else source.to_json()
        if self.pick != "all":
            data["pick"] = self.pick
        if self.select is not None:
            data["select"] = {name: source.to_json() for name, source in self.select.items()}
        return data


def constant(value: Any) -> Source:
    return Source(kind="constant", value=value)


def read_sources(outer: Table, key: str) -> dict[str, Source]:
    block = outer.table(key)
    return {} if block is None else _read_members(block, 0)


def read_source(outer: Table, key: str, depth: int = 0) -> Source | None:
    block = outer.table(key)
    return None if block is None else _read(block, depth)


def read_conditions(outer: Table, key: str, depth: int = 0) -> tuple[Condition, ...]:
    return tuple(_read_condition(table, depth) for table in outer.tables(key))


def sources_in(source: Source) -> list[Source]:
    found = [source]
    for condition in source.where:
        found += sources_in(condition.left)
        found += [] if condition.right is None else sources_in(condition.right)
    for inner in (source.sort, source.limit, *(source.select or {}).values()):
        found += [] if inner is None else sources_in(inner)
    return found


def _read_members(block: Table, depth: int) -> dict[str, Source]:
    inner = {name: block.table(name) for name in block.data}
    return {name: _read(table, depth) for name, table in inner.items() if table is not None}


def _expand_reference(table: Table) -> Table:
    """Write a reference of CHAIN, such as `found.rooms[0].id`, with the words of a source."""
    path, is_first, inner = (table.text(FROM) or "").partition("[0]")
    root, _, rest = path.partition(".")
    if not root or "[" in path + inner or (inner and inner[0] != ".") or {"kind", "value"} & table.data.keys():
        form = "the only path, such as input.city, item.id, found.rooms or found.rooms[0].id"
        table.wrong(FROM, form, table.value(FROM))
    kind = {"input": "proposal", "item": "item"}.get(root, "previous_step")
    found = {"kind": kind, "value": path if kind == "previous_step" else rest}
    first = {"pick": "first", "get": inner[1:]} if is_first else {}
    others = {name: value for name, value in table.data.items() if name != FROM}
    return Table({**first, **others, **found}, table.at, table.findings)


def _read(table: Table, depth: int) -> Source:
    if table.has(FROM):
        table = _expand_reference(table)
    kind = table.choice("kind", SOURCES)
    for key in ("kind", "value"):
        if not table.has(key):
            table.missing(key)
    table.check_json("value")
    table.check_json("default")
    value = table.value("value")
    if kind not in (None, "constant") and value is not None and not isinstance(value, str):
        table.wrong("value", "a path", value)
        value = ""
    if depth >= _DEEPEST:
        table.wrong("kind", f"allowed here: sources are at most {_DEEPEST} deep", kind)
        return constant(None)
    selected = table.table("select")
    source = Source(
        kind=kind or "constant",
        value=value,
        default=table.value("default"),
        where=read_conditions(table, "where", depth + 1),
        sort=_read_short(table, "sort", (str, list), depth + 1),
        limit=_read_short(table, "limit", (int,), depth + 1),
        pick=table.choice("pick", PICKS) or "all",
        get=table.text("get") or "",
        form=table.choice("as", FORMS) or "",
        reduce=table.choice("reduce", REDUCTIONS) or "",
        select=None if selected is None else _read_members(selected, depth + 1),
    )
    if source.reduce and (source.pick != "all" or source.select is not None):
        table.wrong("reduce", "alone: it makes one value of a list, without `pick` and `select`", source.reduce)
    table.finish()
    return source


def _read_short(table: Table, key: str, plain: tuple[type, ...], depth: int) -> Source | None:
    """Read a source, or a constant written without its kind."""
    value = table.value(key)
    is_short = isinstance(value, plain) and not isinstance(value, bool)
    return constant(value) if is_short else read_source(table, key, depth)


def _read_condition(table: Table, depth: int) -> Condition:
    field = table.text("field")
    left = None if field is not None else table.table("source")
    if field is None and left is None:
        table.missing("field", "Write the `field` of the element, or a `source`.")
    op = table.choice("op", COMPARISONS) or "eq"
    unary = op in ("present", "absent")
    right = None if unary else table.table("value")
    if right is None and not unary and not table.has("value"):
        table.missing("value")
    condition = Condition(
        left=Source(kind="item", value=field or "") if left is None else _read(left, depth + 1),
        op=op,
        right=None if right is None else _read(right, depth + 1),
    )
    table.finish()
    return condition


def _read_steps(recipe: Table, key: str) -> tuple[RecipeStep, ...]:
    """Read steps; those of a `together` in place of a call are neighbours of one group."""
    steps: list[RecipeStep] = []
    for number, table in enumerate(recipe.tables(key), 1):
        if table.has("together"):
            inner = [read_settings(RecipeStep, one) for one in table.tables("together")]
            steps += [replace(step, group=f"together_{number}") for step in inner]
            if not inner:
                table.missing("together", "It has at least one step.")
            table.finish()
        else:
            steps.append(read_settings(RecipeStep, table))
    return tuple(steps)


def _read_name(step: Table, key: str) -> str | None:
    return step.text(key if step.has(key) else "name")


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
    )  # the first call sends no number. An empty page ends the list.
    items: str = setting("", "The path of the list in an answer.", required=True)
    most: int = setting(20, "The most pages of a list; more make the composition fail.", bounds=(1, 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a step is tried if its failure may pass: 408, 429, 500, 503, or an answer with Retry-After."""

    attempts: int = setting(1, "The most attempts, the first included.", required=True, bounds=(1, 20))
    delay: float = setting(
        0.2, "Seconds before the second attempt; each further pause is twice as long.", kind="seconds", bounds=(0, 3600)
    )


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
        return self.method, self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStep:
    """One call of a recipe, or one for each element of a list."""

    method: str = setting("", "The verb of the step.", required=True, format=VERB, parse=str.upper)
    path: str | None = setting(None, "The path of the endpoint, with its `{parameters}`. Without it: `/`.")
    input: Mapping[str, Source] = setting(
        {}, "The input of the step, a source for each field.", key="parameters", read=read_sources
    )
    output: str | None = setting(
        None,
        "The name of the result for later steps. Also: `name`.",
        key="capture_as",
        known=("name",),
        read=_read_name,
    )
    group: str | None = setting(
        None,
        "Neighbouring steps of one group run at the same time. So do the steps of a step that only has `together`.",
    )
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
    compensate: Compensation | None = optional_table(Compensation, key="undo", old="compensate")
    retry: Retry | None = optional_table(Retry)
    timeout: float | None = setting(
        None, "Seconds for one attempt. Without it: the time of all steps.", kind="seconds", bounds=(0.001, 3600)
    )

    @property
    def endpoint(self) -> tuple[str, str]:
        return self.method, self.path or "/"

    def to_json(self) -> dict[str, Any]:
        each, undo = self.for_each, self.compensate
        data: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "capture_as": self.output,
            "group": self.group,
            "when": [condition.to_json() for condition in self.when] or None,
            "parameters": _write_sources(self.input),
            "for_each": each and each.to_json(),
            "max_items": each and self.max_items,
            "on_failure": self.on_failure if each or self.on_failure != "fail" else None,
            "pages": self.pages and {name: value for name, value in asdict(self.pages).items() if value != ""},
            "undo": undo and {"method": undo.method, "path": undo.path, "parameters": _write_sources(undo.input) or {}},
            "retry": self.retry and asdict(self.retry),
            "timeout": self.timeout,
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
        read=_read_steps,
        required=True,
        advice="A recipe has at least one [[recipe.steps]].",
    )
    description: str = setting("", "What it does, for people.")
    version: str = setting("1", "Its version.", read=_read_version)
    pattern: Mapping[str, Any] = setting(
        {}, "The proposals it answers.", kind="table", of=RecipePattern, read=_read_pattern
    )  # only the keys that are written
    aggregation: str = setting(
        "last", "How the results are combined.", kind="table", of=Aggregation, read=_read_aggregation
    )  # the `last` result, a `merge` of all, or a `list`
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
