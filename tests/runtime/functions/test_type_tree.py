"""What annotations are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from msgspec import Meta
from msgspec import inspect as kinds

from bespeak.errors import ContractError
from bespeak.runtime.functions.annotations import is_plain, read_types, walk

T = TypeVar("T")


@dataclass
class Node:
    at: datetime
    next: Node | None = None


@dataclass
class Pair(Generic[T]):
    one: T
    other: T


@pytest.mark.parametrize("annotation", [str, date, list[int], str | None, Annotated[str, Meta(examples=["x"])]])
def test_simple_types_and_their_containers_are_plain(annotation: Any) -> None:
    assert is_plain(annotation)


@pytest.mark.parametrize("annotation", [Node, list[Node], Pair[int], datetime | None, complex, Any, Literal["x"]])
def test_types_that_need_inspection_are_not_plain(annotation: Any) -> None:
    assert not is_plain(annotation)


def test_plain_annotations_are_checked_and_left_out() -> None:
    assert read_types([str, list[int]]) == ()
    assert len(read_types([str, Node])) == 1


def test_every_type_inside_is_found_and_one_that_holds_itself_only_once() -> None:
    found = list(walk(read_types([dict[str, list[Node]], tuple[Node, int]])))
    assert sum(isinstance(kind, kinds.DataclassType) for kind in found) == 1
    assert sum(isinstance(kind, kinds.DateTimeType) for kind in found) == 1
    assert any(isinstance(kind, kinds.StrType) for kind in found)
    assert any(isinstance(kind, kinds.IntType) for kind in found)


@pytest.mark.parametrize("annotation", [str | date, Annotated[int, Meta(max_length=3)]])
def test_a_type_that_json_cannot_represent_is_refused(annotation: Any) -> None:
    with pytest.raises(ContractError, match="cannot be read from JSON"):
        read_types([annotation])
