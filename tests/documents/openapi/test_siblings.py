"""Other operations tell whether a state can be read and whether a change can be taken back."""

from __future__ import annotations

import pytest

from bespeak.documents.openapi.description import Operation
from bespeak.documents.openapi.facade import Siblings


def operation(call: str) -> Operation:
    method, path, *name = call.split()
    return Operation(method=method, path=path, base="https://x.example", pointer="", operation_id="".join(name))


@pytest.mark.parametrize(
    ("call", "other"),
    [
        ("POST /pets", "DELETE /pets/{id}"),
        ("POST /pets", "PATCH /pets/{petId}"),
        ("POST /users/{id}/pets", "DELETE /pets/{id}"),
        ("POST /bookings", "POST /bookings/{id}/cancel"),
        ("PUT /stars/{id}", "DELETE /stars/{id}"),
        ("POST /servers/{id}/start", "POST /servers/{id}/stop"),
        ("POST /servers/{id}/powerOff", "POST /servers/{id}/start"),
        ("POST /#a CreateTable", "POST /#b DeleteTable"),
        ("POST /channels.create", "POST /channels.delete"),
        ("POST /x Machines_Stop", "POST /y Machine_Start"),
        ("DELETE /notes/{id}/read note/mark_unread", "PATCH /notes/{id}/read note/mark_read"),
    ],
)
def test_another_call_takes_it_back(call: str, other: str) -> None:
    assert Siblings([operation(call), operation(other)]).is_undone(operation(call))


@pytest.mark.parametrize(
    ("call", "other"),
    [
        ("POST /pets", "GET /pets/{id}"),
        ("POST /pets", "DELETE /owners/{id}"),
        ("POST /pets/{id}/feed", "POST /pets/{id}/wash"),
        ("POST /#a DeleteTable", "POST /#b CreateTable"),
        ("POST /#a CreateTable", "POST /#b DeleteRow"),
        ("POST /#a CreateTable", "GET /#b DeleteTable"),
        ("DELETE /pets/{id}", "PUT /pets/{id}"),
    ],
)
def test_no_other_call_takes_it_back(call: str, other: str) -> None:
    assert not Siblings([operation(call), operation(other)]).is_undone(operation(call))


def test_state_is_readable_by_a_get_of_the_same_path() -> None:
    siblings = Siblings([operation("GET /pets/{petId}"), operation("PUT /pets/{id}")])
    assert siblings.has_readable_state(operation("PUT /pets/{id}"))
    assert not siblings.has_readable_state(operation("PUT /owners/{id}"))
