"""Shadows of types: what they hold, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
import typing_extensions
from pydantic import BaseModel

from bespeak.runtime.functions.output_filter import Shadow, Unshadowed


@dataclass
class Chain:
    """A type that refers to itself."""

    name: str
    rest: Chain | None = None


class Model(BaseModel):
    """A type of pydantic."""

    name: str


class Open(typing_extensions.TypedDict, extra_items=int):
    """A type with room for more."""

    name: str


class Priced(TypedDict):
    """A type with a number that may be infinite."""

    price: Annotated[float, msgspec.Meta(ge=0)]


def test_a_shadow_holds_the_declared_fields_at_every_depth() -> None:
    value = {"name": "a", "key": 1, "rest": {"name": "b", "key": 2}}
    held = msgspec.to_builtins(Shadow(Chain).convert(value))
    assert held == {"name": "a", "rest": {"name": "b"}}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Chain, {"rest": None}), (Chain, 5), (Priced, {"price": -1}), (list[datetime], [datetime(2026, 1, 1)])],
)
def test_a_value_of_another_type_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        Shadow(annotation).convert(value)


@pytest.mark.parametrize(
    ("annotation", "dumps", "is_exact", "has_numbers"),
    [
        (Chain, False, True, False),
        (Priced, False, True, True),
        (list[Model], True, True, True),
        (dict[str, Annotated[str, msgspec.Meta(pattern="^a")]], False, False, False),
        (list[Annotated[int, msgspec.Meta(extra_json_schema={"format": "odd"})]], False, False, False),
        (list[Annotated[int, msgspec.Meta(description="an odd number")]], False, True, False),
    ],
)
def test_a_shadow_knows_what_it_does_not_check(annotation: Any, dumps: bool, is_exact: bool, has_numbers: bool) -> None:
    shadow = Shadow(annotation)
    assert (shadow.dumps, shadow.is_exact, shadow.has_numbers) == (dumps, is_exact, has_numbers)


@pytest.mark.parametrize("annotation", [Open, msgspec.Raw, list[Iterator[int]]])
def test_some_types_have_no_shadow(annotation: Any) -> None:
    with pytest.raises((Unshadowed, TypeError)):
        Shadow(annotation)
