"""Recipes from Python functions: the function runs once, with placeholders that record what it does with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

import msgspec

from bespeak.contract.recipe import (
    REDUCTIONS,
    Compensation,
    Condition,
    Paging,
    Recipe,
    RecipeStep,
    Retry,
    Source,
    constant,
)
from bespeak.errors import ContractError
from bespeak.runtime.functions.annotations import dump_foreign

_UNKNOWN: Final = (
    "the value of {0} is not known when the recipe is written, so Python cannot {1}: the function runs once, when it "
    "is declared. Use `when`, `for_each`, `where` or an endpoint"
)


def _comparing(op: str) -> Any:
    return lambda left, right: _compare(left, op, right)


class Traced:
    """A value of a later call. Its fields are attributes or items; its methods say what is done with a list."""

    __slots__ = ("_source",)
    _source: Source

    def __init__(self, source: Source) -> None:
        object.__setattr__(self, "_source", source)

    def __getattr__(self, name: str) -> Traced:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Traced:
        if not isinstance(name, str):
            raise _refuse(self, f"take [{name!r}] of it: write .first() or .only() for one element")
        source = self._source
        if source.select is not None or source.reduce:
            raise ContractError(f"take {name!r} before `select` or `reduce`: what follows it is another value")
        if source.get or source.where or source.sort is not None or source.limit is not None or source.pick != "all":
            return Traced(replace(source, get=f"{source.get}.{name}".lstrip(".")))
        return Traced(replace(source, value=f"{source.value}.{name}".lstrip(".")))

    def _with(self, method: str, **change: Any) -> Traced:
        """Return the value after one more operation on its list, in the order in which a recipe does them."""
        source = self._source
        order = ("where", "sort", "limit", "first")
        done = {"where": source.where, "sort": source.sort, "limit": source.limit, "first": source.pick != "all"}
        later = order[order.index("first" if method == "only" else method) + 1 :]
        ended = source.get or source.reduce or source.select is not None or done["first"]
        if ended or any(done[name] for name in later):
            order_text = "a recipe keeps, sorts, limits and picks rows in this order, then takes fields or shapes them"
            raise ContractError(f"`{method}` comes too late: {order_text}. Let an endpoint do the rest")
        return Traced(replace(source, **change))

    def default(self, value: Any) -> Traced:
        """Use another value if there is none."""
        return Traced(replace(self._source, default=plain(value)))

    def where(self, *tests: Callable[[Any], Any]) -> Traced:
        """Keep the elements for which every test holds: `rooms.where(lambda room: room.price <= limit)`."""
        found = tuple(_condition(test(Traced(Source(kind="item")))) for test in tests)
        return self._with("where", where=(*self._source.where, *found))

    def sort(self, *order: Any) -> Traced:
        """Sort by fields, `"-price"` for descending order, or by a value that names them."""
        by = as_source(order[0]) if len(order) == 1 else constant(list(order))
        return self._with("sort", sort=by)

    def limit(self, count: Any) -> Traced:
        """Keep so many elements at most."""
        return self._with("limit", limit=as_source(count))

    def first(self) -> Traced:
        """Take the first element. Without one the composition fails."""
        return self._with("first", pick="first")

    def only(self) -> Traced:
        """Take the only element. Without one, or with several, the composition fails."""
        return self._with("only", pick="only")

    def reduce(self, way: str) -> Traced:
        """Make one value of a list: its `count`, `sum`, `min`, `max` or `average`."""
        if way not in REDUCTIONS:
            raise ContractError(f"a list is reduced to {', '.join(REDUCTIONS)}; got {way!r}")
        return Traced(replace(self._source, reduce=way))

    def select(self, shape: Callable[[Any], Any]) -> Traced:
        """Make a new object of each element: `rooms.select(lambda room: {"id": room.room_id})`."""
        return Traced(replace(self._source, select=as_members(shape(Traced(Source(kind="item"))))))

    def contains(self, other: Any) -> Condition:
        """Compare: a text contains another without regard to case, or a list has a member."""
        return _compare(self, "contains", other)

    def is_in(self, others: Any) -> Condition:
        """Compare: a list has this member."""
        return _compare(self, "in", others)

    def present(self) -> Condition:
        """Compare: there is a value."""
        return Condition(left=self._source, op="present")

    def absent(self) -> Condition:
        """Compare: there is no value."""
        return Condition(left=self._source, op="absent")

    __eq__, __ne__ = _comparing("eq"), _comparing("ne")
    __lt__, __le__, __gt__, __ge__ = _comparing("lt"), _comparing("lte"), _comparing("gt"), _comparing("gte")
    __hash__ = None  # type: ignore[assignment] # it is equal to nothing, it makes a condition

    def __bool__(self) -> bool:
        raise _refuse(self, "decide by it")

    def __iter__(self) -> Any:
        raise _refuse(self, "loop over it")

    def __str__(self) -> str:
        raise _refuse(self, "put it into a text")

    def __format__(self, form: str) -> str:
        return str(self)

    def __add__(self, other: Any) -> Any:
        raise _refuse(self, "compute with it")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __add__


def as_source(value: Any) -> Source:
    """Return the source of a value: a traced one, a constant, or an object that has traced ones in it."""
    if isinstance(value, Traced):
        return value._source
    if isinstance(value, Condition):
        raise ContractError("a comparison is not a value of a step; it belongs into `when` or `where`")
    members = _members(value)
    if members is not None and any(_has_traced(each) for each in members.values()):
        return Source(kind="constant", value={}, select=as_members(members))
    if _has_traced(value):
        raise ContractError("a list of values cannot be put together by a recipe; take a list that an endpoint returns")
    return constant(plain(value))


def as_members(value: Any) -> dict[str, Source]:
    """Return the source of each member of an object: a mapping, a dataclass or a struct."""
    members = _members(value)
    if members is None:
        raise ContractError(f"a recipe needs an object with names for its values; got {type(value).__name__}")
    return {str(name): as_source(each) for name, each in members.items()}


def as_conditions(when: Any) -> tuple[Condition, ...]:
    return tuple(_condition(each) for each in (when if isinstance(when, list | tuple) else (when,)))


def plain(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=dump_foreign)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ContractError(f"{value!r} cannot be a constant of a recipe: {error}") from None


def _members(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    return None


def _has_traced(value: Any) -> bool:
    if isinstance(value, Traced):
        return True
    members = _members(value)
    inner = members.values() if members is not None else value if isinstance(value, list | tuple | set) else ()
    return any(_has_traced(each) for each in inner)


def _condition(found: Any) -> Condition:
    if isinstance(found, Condition):
        return found
    raise ContractError("a test must compare a value: `room.price <= limit`, `room.name.contains(text)`")


def _compare(left: Traced, op: str, right: Any) -> Condition:
    return Condition(left=left._source, op=op, right=as_source(right))


def _refuse(value: Traced, what: str) -> ContractError:
    source = value._source
    named = f"{source.kind} {source.value}".strip() if isinstance(source.value, str) else source.kind
    return ContractError(_UNKNOWN.format(repr(named), what))


Input = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


class RecipeTrace:
    def __init__(self) -> None:
        self._steps: list[RecipeStep] = []
        self._group: str | None = None
        self._groups = 0

    def run(self, function: Callable[..., Any], *, name: str, timeout_seconds: float) -> Recipe:
        """Run a function and return its recipe. Raises ContractError for what a recipe cannot express."""
        given = {}
        for each in inspect.signature(function).parameters.values():
            default = None if each.default is inspect.Parameter.empty else plain(each.default)
            given[each.name] = Traced(Source(kind="proposal", value=each.name, default=default))
        returned = function(**given)
        if not self._steps:
            raise ContractError("the function calls no step; write `app.step(METHOD, path, {...})` in it")
        last = Source(kind="previous_step", value=self._steps[-1].output)
        whole = isinstance(returned, Traced) and returned._source == last
        output = {} if whole or returned is None else as_members(returned)
        return Recipe(name=name, steps=tuple(self._steps), output=output, timeout_seconds=timeout_seconds)

    def add(
        self,
        method: str,
        path: str,
        given: Input,
        *,
        when: Any = None,
        for_each: Any = None,
        undo: tuple[str, str, Input] | None = None,
        pages: Mapping[str, Any] | None = None,
        max_items: int = 100,
        on_failure: str = "fail",
        retry: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        name: str | None = None,
    ) -> Traced:
        output = Source(kind="previous_step", value=name or f"step_{len(self._steps) + 1}")
        if any(step.output == output.value for step in self._steps):
            raise ContractError(f"two steps have the name {output.value!r}")
        compensation = None
        if undo is not None:
            undoing, undone, taken = undo
            compensation = Compensation(method=undoing, path=undone, input=as_members(_applied(taken, output)))
        step = RecipeStep(
            method=method,
            path=path,
            input=as_members(_applied(given, Source(kind="item"))),
            output=output.value,
            group=self._group,
            when=() if when is None else as_conditions(when),
            for_each=None if for_each is None else as_source(for_each),
            max_items=max_items,
            on_failure=on_failure,
            pages=None if pages is None else Paging(**pages),
            compensate=compensation,
            retry=None if retry is None else Retry(**retry),
            timeout=timeout,
        )
        self._steps.append(step)
        return Traced(output)

    @contextmanager
    def together(self) -> Iterator[None]:
        if self._group is not None:
            raise ContractError("steps that run at the same time cannot be put into each other")
        self._groups += 1
        self._group = f"group_{self._groups}"
        try:
            yield
        finally:
            self._group = None


def _applied(given: Input, source: Source) -> Mapping[str, Any]:
    return given(Traced(source)) if callable(given) else given
