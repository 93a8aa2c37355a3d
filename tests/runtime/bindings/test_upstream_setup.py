from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.checks.lint.conftest import ROOM

from bespeak.contract.handler import ExternalService
from bespeak.runtime.bindings.external import check_setup, resolve_credentials, upstream_url
from bespeak.runtime.bindings.upstream_request import Credentials
from bespeak.text.diagnostics.diagnostic import Diagnostic

SECRET = "s3cr3t"


def service(**fields: Any) -> ExternalService:
    return ExternalService(**{"url": "https://u.example/rooms", "method": "GET", **fields})


def resolved(environment: Mapping[str, str], **fields: Any) -> Credentials | list[Diagnostic]:
    return resolve_credentials(ROOM, service(**fields), environment)


@pytest.mark.parametrize(
    ("key", "member"),
    [("headers", "headers"), ("query_credentials", "query"), ("cookie_credentials", "cookies")],
)
def test_variables_are_taken_from_the_environment_in_every_place(key: str, member: str) -> None:
    found = resolved({"A": SECRET, "B": "2"}, **{key: {"name": "${A}.${B}"}})
    assert isinstance(found, Credentials)
    assert getattr(found, member) == {"name": f"{SECRET}.2"}


@pytest.mark.parametrize("key", ["headers", "query_credentials", "cookie_credentials"])
def test_a_variable_that_is_not_set_is_named_and_its_value_shown_nowhere(key: str) -> None:
    found = resolved({"A": SECRET}, **{key: {"first": "${A}${MISSING}", "second": "${A}"}})
    assert isinstance(found, list)
    assert [finding.pointer for finding in found] == [f"/endpoint/handler/{key}/first"]
    assert "'MISSING'" in found[0].message
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("headers", "X A", "1"),
        ("headers", "A", "1\r\nB: 2"),
        ("headers", "A", "é"),
        ("query_credentials", "", "1"),
        ("query_credentials", "key", "1\n2"),
        ("cookie_credentials", "a b", "1"),
        ("cookie_credentials", "sid", "1; admin=1"),
        ("cookie_credentials", "sid", "1 2"),
        ("cookie_credentials", "sid", "1\r\nB: 2"),
        ("cookie_credentials", "sid", "é"),
    ],
)
def test_a_credential_that_cannot_be_sent_is_found_without_being_shown(key: str, name: str, value: str) -> None:
    found = resolved({"V": f"{SECRET}{value}"}, **{key: {name: "${V}"}})
    assert isinstance(found, list)
    assert len(found) == 1
    assert SECRET not in str(found)


def test_a_credential_in_the_query_may_need_encoding() -> None:
    assert isinstance(resolved({"V": "a b&c=é"}, query_credentials={"key": "${V}"}), Credentials)


@pytest.mark.parametrize("path", ["/{room_id}", "/files/{room_id}.json", "/{room_id}-{room_id}", "/x?a={room_id}"])
def test_placeholders_may_be_a_part_of_a_segment(path: str) -> None:
    handler = service(url=f"https://u.example{path}")
    assert check_setup(ROOM, handler) == []
    url = upstream_url(handler)
    assert url is not None
    assert url.host == "u.example"


@pytest.mark.parametrize("url", ["", "https://", "nonsense", "https://[::1", "https://a:x/"])
def test_an_invalid_url_is_reported(url: str) -> None:
    handler = service(url=url)
    assert upstream_url(handler) is None
    assert len(check_setup(ROOM, handler)) == 1


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"method": "POST"}, 1),
        ({"method": "POST", "query": ("a",)}, 0),
        ({"method": "POST", "query": ("a", "b")}, 1),
        ({"method": "GET", "query": ("a",)}, 1),
        ({"method": "POST", "query": ("a",), "body_field": "room_id"}, 1),
    ],
)
def test_one_upstream_name_may_occur_once_in_the_query_and_once_in_the_body(fields: dict[str, Any], count: int) -> None:
    handler = service(input_transform={"a": "id", "b": "id"}, **fields)
    assert len(check_setup(ROOM, handler)) == count
