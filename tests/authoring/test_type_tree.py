"""What annotations are made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any

import pytest
from msgspec import Meta
from msgspec import inspect as kinds

from bespeak.authoring.type_tree import is_plain, read_types, walk
from bespeak.errors import ContractError


@dataclass
class Node:
    at: datetime
    next: Node | None = None


@pytest.mark.parametrize("annotation", [str, int, date, datetime])
def test_a_type_that_says_everything_by_itself_is_plain(annotation: Any) -> None:
    assert is_plain(annotation)


@pytest.mark.parametrize("annotation", [list[int], str | None, Annotated[str, Meta(examples=["x"])], Node, Any, None])
def test_whatever_is_made_of_others_is_not_plain(annotation: Any) -> None:
    assert not is_plain(annotation)


def test_every_type_inside_is_found_and_one_that_holds_itself_only_once() -> None:
    found = list(walk(read_types([dict[str, list[Node]], tuple[Node, int]])))
    assert sum(isinstance(kind, kinds.DataclassType) for kind in found) == 1
    assert sum(isinstance(kind, kinds.DateTimeType) for kind in found) == 1
    assert any(isinstance(kind, kinds.StrType) for kind in found)
    assert any(isinstance(kind, kinds.IntType) for kind in found)


@pytest.mark.parametrize("annotation", [str | date, Annotated[int, Meta(max_length=3)]])
def test_what_json_data_cannot_become_is_refused(annotation: Any) -> None:
    with pytest.raises(ContractError, match="cannot be read from JSON"):
        read_types([annotation])
