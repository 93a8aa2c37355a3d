"""The types page tells the truth: examples convert, and what it calls refused is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import types_tables

from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import read_handler


def without_annotation(value) -> None:  # type: ignore[no-untyped-def]
    """Do nothing."""


def without_result(value: int):  # type: ignore[no-untyped-def]
    """Do nothing."""


def any_positions(*values: int) -> None:
    """Do nothing."""


def any_names(**values: int) -> None:
    """Do nothing."""


def shared_default(value: list[int] = [1]) -> None:  # noqa: B006 - that is what is refused
    """Do nothing."""


@pytest.mark.parametrize("function", [without_annotation, without_result, any_positions, any_names, shared_default])
def test_functions_that_the_page_calls_refused_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ContractError):
        read_handler(function)


def test_every_example_of_a_type_can_be_converted() -> None:
    kinds = types_tables.SCALARS | types_tables.CONTAINERS | types_tables.CLASSES
    assert types_tables.input_table(kinds).count("\n") == len(kinds) + 1


def test_scalars_cannot_be_returned() -> None:
    assert "`int`" not in types_tables.output_table()
    assert "`Guest (dataclass)`" in types_tables.output_table()


def test_refused_types_are_refused() -> None:
    assert "`Path`" in types_tables.refused_list()
