"""The common form of every OpenAPI description."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from tests.cases import rows

from bespeak.documents.openapi.description import (
    Description,
    Operation,
    Parameter,
    default_schema,
    is_json,
    preferred,
    select_operations,
    sent_type,
    with_server,
)


def test_description_is_immutable() -> None:
    operation = Operation(method="GET", path="/pets", base="https://pets.example", pointer="/paths/~1pets/get")
    description = Description(openapi="3.1.0", operations=(operation,))
    with pytest.raises(FrozenInstanceError):
        description.title = "other"  # type: ignore[misc]
    assert description.operations[0].security == ()


@rows(
    "fields, style",
    ({}, "repeat"),
    ({"explode": False}, "comma"),
    ({"explode": False, "schema": {"type": "string"}}, "repeat"),
    ({"style": "spaceDelimited", "explode": False}, "space"),
    ({"style": "pipeDelimited", "explode": False}, "pipe"),
    ({"style": "pipeDelimited", "explode": True}, "repeat"),
    ({"style": "deepObject"}, "deep"),
    ({"style": "deepObject", "is_json": True}, "json"),
)
def test_parameter_has_a_list_style(fields: dict[str, Any], style: str) -> None:
    given = {"name": "q", "place": "query", "required": False, "schema": {"type": "array"}, **fields}
    assert Parameter(**given).list_style == style


def test_best_media_type_comes_first() -> None:
    offered = ["text/csv", "multipart/form-data", "application/x-www-form-urlencoded", "*/*", "application/hal+json"]
    assert preferred([*offered, "application/json; charset=utf-8"]) == [
        "application/json; charset=utf-8",
        "application/hal+json",
        "*/*",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/csv",
    ]


def test_json_is_sent_if_any_type_is_allowed_and_has_many_names() -> None:
    assert sent_type("*/*") == "application/json"
    assert sent_type(" text/csv ") == "text/csv"
    assert all(map(is_json, ("application/json", "Application/Problem+JSON; v=1", "text/json")))
    assert not is_json("application/xml")


@rows(
    "media_type, schema",
    ("application/json", {}),
    ("text/plain", {"type": "string"}),
    ("application/xml", {"type": "string"}),
    ("multipart/form-data", {"type": "object"}),
    ("image/png", {"type": "string", "contentEncoding": "base64"}),
)
def test_media_type_alone_gives_a_schema(media_type: str, schema: dict[str, Any]) -> None:
    assert default_schema(media_type) == schema


DESCRIPTION = Description(
    openapi="3.0.3",
    operations=(
        Operation(method="GET", path="/pets", base="", pointer="", operation_id="listPets", tags=("pets",)),
        Operation(method="POST", path="/pets", base="https://a.example", pointer="", operation_id="addPet"),
        Operation(method="GET", path="/admin/users", base="", pointer="", tags=("admin", "users")),
    ),
)


@rows(
    "include, exclude, kept",
    ((), (), [0, 1, 2]),
    (("pets",), (), [0]),
    (("/pets",), (), [0, 1]),
    (("/admin/*",), (), [2]),
    (("*Pet*",), (), [0, 1]),
    (("POST *",), (), [1]),
    ((), ("admin",), [0, 1]),
    (("/pets", "users"), ("add*",), [0, 2]),
    (("nothing",), (), []),
    (("PETS",), (), []),
)
def test_patterns_choose_operations(include: tuple[str, ...], exclude: tuple[str, ...], kept: list[int]) -> None:
    found = select_operations(DESCRIPTION, include, exclude).operations
    assert [DESCRIPTION.operations.index(operation) for operation in found] == kept


def test_server_is_set_for_all_operations_and_for_unresolved_variables() -> None:
    changed, replaced = with_server(DESCRIPTION, "https://b.example/v1/")
    assert {operation.base for operation in changed.operations} == {"https://b.example/v1"}
    assert replaced == {"https://a.example": 1}
    assert with_server(changed, "https://b.example/v1")[1] == {}
    open_ended = Operation(method="GET", path="/pets", base="https://{tenant}.example/{version}", pointer="")
    changed, _ = with_server(Description(openapi="3.0.3", operations=(open_ended,)), "https://b.example")
    assert changed.operations[0].base == "https://b.example"
