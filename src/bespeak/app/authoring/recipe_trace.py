"""Recipes from Python functions: the function runs once, with values that are not there yet."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bespeak.app.authoring.traced_value import Traced, as_conditions, as_members, as_source, plain
from bespeak.contract.recipe import Compensation, Paging, Recipe, RecipeStep
from bespeak.contract.source import Source
from bespeak.errors import ContractError

Input = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


class RecipeTrace:
    """The steps of a recipe while its function runs."""

    def __init__(self) -> None:
        self._steps: list[RecipeStep] = []
        self._group: str | None = None
        self._groups = 0

    def run(self, function: Callable[..., Any], *, name: str, timeout_seconds: float) -> Recipe:
        """Run a function and return its recipe. Raises ContractError for what a recipe cannot express."""
        parameters = inspect.signature(function).parameters.values()
        returned = function(**{each.name: _given(each) for each in parameters})
        if not self._steps:
            raise ContractError("the function calls no step; write `app.step(METHOD, path, {...})` in it")
        last = Source(kind="previous_step", value=self._steps[-1].output)
        whole = isinstance(returned, Traced) and returned._source == last
        return Recipe(
            name=name,
            steps=tuple(self._steps),
            output={} if whole or returned is None else as_members(returned),
            timeout_seconds=timeout_seconds,
        )

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
        name: str | None = None,
    ) -> Traced:
        """Add a step; return its output."""
        output = Source(kind="previous_step", value=name or f"step_{len(self._steps) + 1}")
        if any(step.output == output.value for step in self._steps):
            raise ContractError(f"two steps have the name {output.value!r}")
        self._steps.append(
            RecipeStep(
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
                compensate=None if undo is None else _undoing(*undo, output),
            )
        )
        return Traced(output)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Put the steps of a block into one group."""
        if self._group is not None:
            raise ContractError("steps that run at the same time cannot be put into each other")
        self._groups += 1
        self._group = f"group_{self._groups}"
        try:
            yield
        finally:
            self._group = None


def _given(parameter: inspect.Parameter) -> Traced:
    default = None if parameter.default is inspect.Parameter.empty else plain(parameter.default)
    return Traced(Source(kind="proposal", value=parameter.name, default=default))


def _applied(given: Input, source: Source) -> Mapping[str, Any]:
    return given(Traced(source)) if callable(given) else given


def _undoing(method: str, path: str, given: Input, output: Source) -> Compensation:
    return Compensation(method=method, path=path, input=as_members(_applied(given, output)))
