"""Operations by tag, path and operationId."""

from __future__ import annotations

import pytest

from bespeak.documents.openapi.description import Description, Operation, select_operations, with_server

DESCRIPTION = Description(
    openapi="3.0.3",
    operations=(
        Operation(method="GET", path="/pets", base="", pointer="", operation_id="listPets", tags=("pets",)),
        Operation(method="POST", path="/pets", base="https://a.example", pointer="", operation_id="addPet"),
        Operation(method="GET", path="/admin/users", base="", pointer="", tags=("admin", "users")),
    ),
)


@pytest.mark.parametrize(
    ("include", "exclude", "kept"),
    [
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
    ],
)
def test_patterns_choose_operations(include: tuple[str, ...], exclude: tuple[str, ...], kept: list[int]) -> None:
    found = select_operations(DESCRIPTION, include, exclude).operations
    assert [DESCRIPTION.operations.index(operation) for operation in found] == kept


def test_server_is_set_for_all_operations_and_replaced_addresses_are_counted() -> None:
    changed, replaced = with_server(DESCRIPTION, "https://b.example/v1/")
    assert {operation.base for operation in changed.operations} == {"https://b.example/v1"}
    assert replaced == {"https://a.example": 1}
    assert with_server(changed, "https://b.example/v1")[1] == {}


def test_address_with_unresolved_variables_is_replaced() -> None:
    open_ended = Operation(method="GET", path="/pets", base="https://{tenant}.example/{version}", pointer="")
    changed, _ = with_server(Description(openapi="3.0.3", operations=(open_ended,)), "https://b.example")
    assert changed.operations[0].base == "https://b.example"
