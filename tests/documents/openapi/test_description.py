"""The common form of every OpenAPI description."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from bespeak.documents.openapi.description import Description, Operation, Parameter


def test_description_is_immutable() -> None:
    operation = Operation(method="GET", path="/pets", base="https://pets.example", pointer="/paths/~1pets/get")
    description = Description(openapi="3.1.0", operations=(operation,))
    with pytest.raises(FrozenInstanceError):
        description.title = "other"  # type: ignore[misc]
    assert description.operations[0].security == ()


@pytest.mark.parametrize(
    ("fields", "style"),
    [
        ({}, "repeat"),
        ({"explode": False}, "comma"),
        ({"explode": False, "schema": {"type": "string"}}, "repeat"),
        ({"style": "spaceDelimited", "explode": False}, "space"),
        ({"style": "pipeDelimited", "explode": False}, "pipe"),
        ({"style": "pipeDelimited", "explode": True}, "repeat"),
        ({"style": "deepObject"}, "deep"),
        ({"style": "deepObject", "is_json": True}, "json"),
    ],
)
def test_parameter_has_a_list_style(fields: dict[str, Any], style: str) -> None:
    given = {"name": "q", "place": "query", "required": False, "schema": {"type": "array"}, **fields}
    assert Parameter(**given).list_style == style
