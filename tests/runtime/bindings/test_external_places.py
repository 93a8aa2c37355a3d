"""The external_service binding against a real HTTPS server that reports what it received."""

from __future__ import annotations

import contextlib
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.echo import Echo, as_json, echo_server
from tests.runtime.bindings.test_external import AGENT, CONTEXT, endpoint

from bespeak.contract.handler import ExternalService
from bespeak.contract.http_route import as_text
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.external import ExternalBinding, bind_external
from bespeak.runtime.bindings.upstream import UpstreamPool

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t-value"
FIELDS = ("room", "tags", "lang", "theme", "photo", "note", "filter")


@pytest.fixture(scope="module")
def server() -> Iterator[Echo]:
    with echo_server() as echo:
        yield echo


@pytest.fixture
def echo(server: Echo) -> Echo:
    server.got.clear()
    server.status, server.headers, server.answer = 200, {}, as_json({})
    return server


def bound(echo: Echo, path: str, pool: UpstreamPool | None = None, **fields: Any) -> ExternalBinding:
    handler = ExternalService(url=echo.url + path, **{"method": "POST", **fields})
    contract = endpoint(handler, **{name: {} for name in FIELDS})
    binding = bind_external(contract, handler, {"SECRET": SECRET}, pool=pool or UpstreamPool(echo.tls))
    assert isinstance(binding, ExternalBinding), binding
    return binding


@contextlib.asynccontextmanager
async def calling(echo: Echo, path: str = "/rooms", **fields: Any) -> AsyncIterator[ExternalBinding]:
    binding = bound(echo, path, **fields)
    try:
        yield binding
    finally:
        await binding.aclose()


async def call(echo: Echo, given: Mapping[str, Any], path: str = "/rooms", **fields: Any) -> Any:
    async with calling(echo, path, **fields) as binding:
        return await binding.call(given, CONTEXT)


EVERYWHERE = {
    "query": ("tags", "filter"),
    "lists": {"tags": "comma", "filter": "deep"},
    "header_fields": {"lang": "Accept-Language"},
    "cookie_fields": {"theme": "Theme"},
    "input_transform": {"note": "remark", "filter": "where"},
    "headers": {"Authorization": "Bearer ${SECRET}"},
    "query_credentials": {"api_key": "${SECRET}"},
    "cookie_credentials": {"sid": "${SECRET}"},
}
INPUT = {
    "room": "12?ä",
    "tags": ["ruhig", "Süd 日本"],
    "filter": {"price": {"max": 90}, "free": True},
    "lang": "de",
    "theme": "dark; sid=stolen",
    "note": "Grüße 👋",
}


async def test_every_field_arrives_in_its_place(echo: Echo) -> None:
    await call(echo, INPUT, "/rooms/{room}.json", **EVERYWHERE)
    got = echo.last
    assert (got.method, got.path) == ("POST", ["rooms", "12?ä.json"])
    assert got.query == [
        ("tags", "ruhig,Süd 日本"),
        ("where[price][max]", "90"),
        ("where[free]", "true"),
        ("api_key", SECRET),
    ]
    assert got.header("accept-language") == "de"
    assert got.cookies == {"sid": SECRET, "Theme": "dark; sid=stolen"}
    assert got.header("authorization") == f"Bearer {SECRET}"
    assert got.header("content-type") == "application/json"
    assert json.loads(got.body) == {"remark": "Grüße 👋"}


async def test_a_form_arrives(echo: Echo) -> None:
    await call(echo, {"note": "Grüße & 👋", "tags": ["a", "b c"], "filter": {"x": 1}, "room": True}, body="form")
    assert echo.last.header("content-type") == "application/x-www-form-urlencoded"
    assert echo.last.form == [
        ("note", "Grüße & 👋"),
        ("tags", "a"),
        ("tags", "b c"),
        ("filter", '{"x":1}'),
        ("room", "true"),
    ]


async def test_a_form_can_have_deep_fields(echo: Echo) -> None:
    await call(echo, {"filter": {"card": {"city": "Köln"}}}, body="form", lists={"filter": "deep"})
    assert echo.last.form == [("filter[card][city]", "Köln")]


async def test_files_and_texts_arrive(echo: Echo) -> None:
    content = bytes(range(256)) * 100
    given = {"photo": b64encode(content).decode(), "note": "Grüße 👋", "room": 12}
    await call(echo, given, body="multipart", files=("photo",), query=("room",))
    assert echo.last.query == [("room", "12")]
    assert echo.last.parts == [("photo", "photo", content), ("note", None, "Grüße 👋".encode())]
    assert echo.last.header("content-length") == str(len(echo.last.body))


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
async def test_a_body_that_is_not_an_object_is_sent(echo: Echo, method: str) -> None:
    await call(echo, {"tags": ["a", 1, None], "room": "12"}, method=method, body_field="tags")
    assert (echo.last.method, json.loads(echo.last.body), echo.last.query) == (method, ["a", 1, None], [("room", "12")])


async def test_ignored_missing_and_reset_contents_are_empty(echo: Echo) -> None:
    await call(echo, {"room": "12"}, body="none")
    assert (echo.last.body, echo.last.header("content-length"), echo.last.query) == (b"", "0", [("room", "12")])
    assert echo.last.header("content-type") is None
    echo.answer = lambda _: b"<html>"
    assert await call(echo, {}, answer="none") == {}
    echo.status, echo.answer = 205, lambda _: b""
    assert await call(echo, {}) == {}


@rows(
    "given, fields, at",
    ({"lang": "de\r\nX-Evil: 1"}, EVERYWHERE, "/lang"),
    ({"lang": "日本"}, EVERYWHERE, "/lang"),
    ({"tags": ["a", "b,c"]}, EVERYWHERE, "/tags/1"),
    ({"tags": list(range(100_000))}, {"query": ("tags",)}, ""),
    ({"api_key": "mine"}, {**EVERYWHERE, "body": "none"}, "/api_key"),
    ({"photo": "no base64!"}, {"body": "multipart", "files": ("photo",)}, "/photo"),
    ({"theme": "x" * 20_000}, EVERYWHERE, ""),
)
async def test_a_value_that_would_escape_its_place_is_refused_and_not_sent(
    echo: Echo, given: dict[str, Any], fields: dict[str, Any], at: str
) -> None:
    refused = await call(echo, given, **fields)
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (422, "input-validation-failed")
    assert [violation["pointer"] for violation in refused.details["violations"]] == [at]
    assert SECRET not in str(refused)
    assert echo.got == []


async def test_no_data_about_the_agent_is_sent_upstream_in_any_form(echo: Echo) -> None:
    for fields in (EVERYWHERE, {"body": "form"}, {"body": "multipart"}, {"method": "GET"}, {"body_field": "note"}):
        await call(echo, {"note": "x"}, **fields)
    allowed = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"}
    for got in echo.got:
        assert {name for name, _ in got.headers} <= {*allowed, "authorization", "cookie"}
        assert len({name for name, _ in got.headers}) == len(got.headers)
        assert got.header("user-agent") == "bespeak"
        for told in (AGENT, "booking:room", "t-1", "s-1"):
            assert told not in str(got)


async def test_upstream_cookies_are_not_shared_with_the_next_caller(echo: Echo) -> None:
    echo.headers = {"set-cookie": "session=of-the-first; Path=/"}
    async with calling(echo) as binding:
        await binding.call({}, CONTEXT)
        await binding.call({}, CONTEXT)
    assert [got.header("cookie") for got in echo.got] == [None, None]


async def test_endpoints_of_one_upstream_share_connections_and_not_headers(echo: Echo) -> None:
    pool = UpstreamPool(echo.tls)
    first = bound(echo, "/a", pool, headers={"X-Tenant": "one"})
    second = bound(echo, "/b", pool, cookie_credentials={"sid": "${SECRET}"})
    for binding in (first, second, first):
        await binding.call({}, CONTEXT)
    assert len(pool._transports) == 1
    await pool.aclose()
    assert [(got.header("x-tenant"), got.header("cookie")) for got in echo.got] == [
        ("one", None),
        (None, f"sid={SECRET}"),
        ("one", None),
    ]


async def test_no_log_of_any_level_holds_a_credential_or_an_input(echo: Echo, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo.status = 503
    given = {**INPUT, "note": "private-note"}
    await call(echo, given, "/rooms/{room}", **EVERYWHERE)
    assert len(echo.got) == 1
    # The upstream of this test logs too.
    logged = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("uvicorn"))
    assert "upstream_error" in logged
    for hidden in (SECRET, "private-note", "ruhig"):
        assert hidden not in logged


@rows(
    "body, kind, text",
    (b"Gr\xfc\xdfe", "text/plain; charset=iso-8859-1", "Grüße"),
    ("Grüße 👋".encode(), "text/plain", "Grüße 👋"),
    (b"", "text/plain", ""),
    (b'{"a": 1}', "application/json", '{"a": 1}'),
)
async def test_a_text_becomes_its_field(echo: Echo, body: bytes, kind: str, text: str) -> None:
    echo.headers, echo.answer = {"content-type": kind}, lambda _: body
    assert await call(echo, {}, answer="text", output_field="report") == {"report": text}


@rows(
    "body, headers",
    (b"\xff", {"content-type": "text/plain"}),
    (b"x", {"content-type": "text/plain; charset=idna"}),
    (b"\x1f\x8b", {"content-type": "text/plain; charset=latin-1", "content-encoding": "gzip"}),
    (b"x" * (8 * 1024 * 1024 + 1), {"content-type": "text/plain"}),
    ids=["no UTF-8", "no charset", "compressed", "too large"],
)
async def test_unreadable_text_is_upstream_malformed_response(echo: Echo, body: bytes, headers: dict[str, str]) -> None:
    echo.headers, echo.answer = headers, lambda _: body
    refused = await call(echo, {}, answer="text", output_field="report")
    assert isinstance(refused, Refused)
    assert refused.code == "upstream_malformed_response"


@pytest.mark.parametrize(("answer", "output"), [([1, 2], {"rooms": [1, 2]}), (3, {"rooms": 3}), ({"a": 1}, {"b": 1})])
async def test_json_that_is_not_an_object_becomes_its_field(echo: Echo, answer: Any, output: Any) -> None:
    echo.answer = as_json(answer)
    assert await call(echo, {}, output_field="rooms", output_transform={"b": "a"}) == output


@rows(
    "code, name",
    (404, "not_found"),
    (409, "client_fault"),
    (500, "server_fault"),
    (503, "busy"),
    # A range is about the input: whoever calls could do nothing about the credentials of this server.
    (401, "upstream_authentication_failed"),
    (403, "upstream_authentication_failed"),
    (302, "upstream_error"),
)
async def test_the_exact_status_counts_first_and_then_its_range(echo: Echo, code: int, name: str) -> None:
    echo.status = code
    mapped = {"404": "not_found", "4XX": "client_fault", "5XX": "server_fault", "503": "busy"}
    refused = await call(echo, {}, error_map=mapped)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.details) == (name, {"details": {"upstream_status": code}})


@pytest.mark.parametrize("mapped", [{}, {"429": "busy"}, {"4XX": "busy"}])
async def test_a_wait_the_upstream_asks_for_reaches_the_caller(echo: Echo, mapped: dict[str, str]) -> None:
    echo.status, echo.headers = 429, {"retry-after": "17"}
    refused = await call(echo, {}, error_map=mapped)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.headers) == ("busy" if mapped else "upstream_error", (("Retry-After", "17"),))
    echo.status = 500
    refused = await call(echo, {}, error_map=mapped)
    assert isinstance(refused, Refused)
    assert refused.headers == ()


async def test_a_redirect_is_not_followed_with_credentials_or_without(echo: Echo) -> None:
    echo.status, echo.headers = 307, {"location": f"{echo.url}/elsewhere"}
    refused = await call(echo, {}, **EVERYWHERE)
    assert isinstance(refused, Refused)
    assert refused.code == "upstream_error"
    assert len(echo.got) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUE = TEXT | st.integers(-(2**53), 2**53) | st.booleans()
ANY_INPUT = st.fixed_dictionaries(
    {"room": VALUE},
    optional={"tags": st.lists(VALUE, max_size=4), "lang": VALUE, "theme": VALUE, "note": VALUE, "filter": VALUE},
)


@pytest.mark.parametrize("body", ["json", "form", "multipart"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given=ANY_INPUT)
async def test_every_input_arrives_unchanged_or_is_refused(echo: Echo, body: str, given: dict[str, Any]) -> None:
    echo.got.clear()
    fields = {**EVERYWHERE, "lists": {"tags": "pipe"}, "body": body}
    answer = await call(echo, given, "/rooms/{room}", **fields)
    if isinstance(answer, Refused):
        assert answer.code == "input-validation-failed"
        assert echo.got == []
        return
    (got,) = echo.got
    assert got.path == ["rooms", as_text(given["room"])]
    assert len(got.raw_path.split(b"/")) == 3
    query = dict(got.query)
    assert query.pop("api_key") == SECRET
    assert query.get("where") == (as_text(given["filter"]) if "filter" in given else None)
    if given.get("tags"):
        assert query["tags"].split("|") == [as_text(tag) for tag in given["tags"]]
    assert query.keys() <= {"where", "tags"}
    assert got.header("accept-language") == (as_text(given["lang"]) if "lang" in given else None)
    crumbs = dict(crumb.split("=", 1) for crumb in (got.header("cookie") or "").split("; "))
    assert crumbs.keys() == {"sid", *(["Theme"] if "theme" in given else [])}
    note = as_text(given["note"]) if "note" in given else None
    if body == "json":
        assert json.loads(got.body) == ({"remark": given["note"]} if "note" in given else {})
    elif body == "form":
        assert dict(got.form).get("remark") == note
    elif note is not None:
        assert got.parts == [("remark", None, note.encode())]
