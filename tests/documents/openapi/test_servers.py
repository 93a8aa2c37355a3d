"""The address of an operation is the nearest one that is described."""

from __future__ import annotations

from typing import Any

import pytest
from tests.documents.openapi.reading import OK, document, read, rules


def base(
    servers: Any, *, item: Any = None, operation: Any = None, base_url: str | None = None, source: str = "api.json"
) -> tuple[str, list[str]]:
    path: dict[str, Any] = {"get": {"responses": OK}}
    if item is not None:
        path["servers"] = item
    if operation is not None:
        path["get"]["servers"] = operation
    made, found = read(document({"/room": path}, servers=servers), source, base_url=base_url)
    return made.operations[0].base, rules(found)


def urls(*given: str) -> list[dict[str, str]]:
    return [{"url": url} for url in given]


def test_nearest_server_is_used() -> None:
    whole, near, nearest = urls("https://a.example/v1/"), urls("https://b.example"), urls("http://c.example:8080/x")
    assert base(whole) == ("https://a.example/v1", [])
    assert base(whole, item=near) == ("https://b.example", [])
    assert base(whole, item=near, operation=nearest) == ("http://c.example:8080/x", [])


def test_first_of_several_servers_is_used_and_reported() -> None:
    assert base(urls("https://a.example", "https://b.example")) == ("https://a.example", ["D167"])


def test_variables_have_their_defaults() -> None:
    variables = {"region": {"default": "eu"}, "port": {"enum": [8443]}, "path": {"default": ""}}
    server = {"url": "https://{region}.a.example:{port}/{path}", "variables": variables}
    assert base([server]) == ("https://eu.a.example:8443", [])


@pytest.mark.parametrize(
    ("url", "base_url", "result"),
    [
        ("/v2", "https://a.example/docs/openapi.json", "https://a.example/v2"),
        ("v2", "https://a.example/docs/openapi.json", "https://a.example/docs/v2"),
        ("//b.example/v2", "https://a.example/", "https://b.example/v2"),
        ("https://b.example", "https://a.example/", "https://b.example"),
        ("https://b.example/v1?x=1#y", None, "https://b.example/v1"),
    ],
)
def test_addresses_are_made_absolute(url: str, base_url: str | None, result: str) -> None:
    assert base(urls(url), base_url=base_url) == (result, [])


def test_source_address_is_the_base() -> None:
    assert base(urls("/v2"), source="https://a.example/openapi.json") == ("https://a.example/v2", [])
    assert base([], source="https://a.example/docs/openapi.json") == ("https://a.example", [])


@pytest.mark.parametrize(
    "servers",
    [urls("/v1"), urls("ftp://a.example"), urls("https://"), urls("https://[bad"), [], [1], "x", urls("{x}"), None],
)
def test_unusable_address_is_reported(servers: Any) -> None:
    result, found = base(servers)
    assert result == ""
    assert set(found) == {"D167"}


@pytest.mark.parametrize(
    ("parts", "base_url", "result"),
    [
        ({"host": "a.example", "basePath": "/v1/", "schemes": ["http", "https"]}, None, "https://a.example/v1"),
        ({"host": "a.example", "schemes": ["http"]}, None, "http://a.example"),
        ({"host": "a.example:8080"}, None, "https://a.example:8080"),
        ({"host": "", "basePath": "/v1"}, "http://b.example/swagger.json", "http://b.example/v1"),
        ({"host": "", "basePath": "/v1"}, None, ""),
        ({"host": "a b"}, None, ""),
    ],
)
def test_2_0_has_schemes_a_host_and_a_base_path(parts: dict[str, Any], base_url: str | None, result: str) -> None:
    made, found = read(document({"/room": {"get": {"responses": OK}}}, "2.0", **parts), base_url=base_url)
    assert made.operations[0].base == result
    assert rules(found) == ([] if result else ["D167"])


def test_credentials_in_an_address_are_dropped_and_reported() -> None:
    assert base(urls("https://user:s3cret@a.example/v1?key=abc")) == ("https://a.example/v1", ["D167"])


@pytest.mark.parametrize(
    "url", ["https://a b.example", "https://a\\.example", "https://a.example:99999", "https://[::1"]
)
def test_invalid_address_is_not_used(url: str) -> None:
    assert base(urls(url)) == ("", ["D167"])


@pytest.mark.parametrize("url", ["https://[::1]:8443", "https://münchen.example", "https://{tenant}.a.example"])
def test_host_may_be_an_ip_address_or_an_international_name(url: str) -> None:
    found, _ = base(urls(url))
    assert found == url


def test_no_finding_shows_the_credentials_of_an_address() -> None:
    servers = urls("https://user:s3cret@a.example:99999", "https://user:s3cret@b.example")
    _, found = read(document({"/room": {"get": {"responses": OK}}}, servers=servers), "api.json")
    assert found
    assert "s3cret" not in str(found)
