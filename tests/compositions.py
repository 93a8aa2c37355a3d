"""Compositions for tests: recipes in short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.recipe import Recipe, RecipeStep, Source, constant

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def compose(method: str, path: str, recipe: str, **fields: Any) -> Endpoint:
    endpoint = make_endpoint(method, path, echo, errors=("composition_failed",), **fields)
    return replace(endpoint, handler=Composition(recipe=recipe))


def given(path: str, **fields: Any) -> Source:
    """Take a value of the caller's input."""
    return Source(kind="proposal", value=path, **fields)


def captured(path: str, **fields: Any) -> Source:
    """Take a value of an earlier step."""
    return Source(kind="previous_step", value=path, **fields)


def item(path: str = "", **fields: Any) -> Source:
    """Take a value of the element that is walked."""
    return Source(kind="item", value=path, **fields)


def step(
    called: str, capture: str | None = None, /, take: Mapping[str, Any] | None = None, **fields: Any
) -> RecipeStep:
    """Make a step of `METHOD /path`; plain values are constants."""
    method, _, path = called.partition(" ")
    sources = {name: value if isinstance(value, Source) else constant(value) for name, value in (take or {}).items()}
    return RecipeStep(method=method, path=path, output=capture, input=sources, **fields)


def recipe(*steps: RecipeStep, name: str = "r", **fields: Any) -> Recipe:
    return Recipe(name=name, steps=steps, **fields)
