"""The input of a capability as an HTTP request."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.agent.client.http_transport import CapabilityRequest, agtp_status, build_request, error_body
from bespeak.agent.discovery.capability import Capability, Placement
from bespeak.contract.http_value import leaves_segment
from bespeak.faces.http.translation import problem
from bespeak.protocol.address_guard import Origin
from bespeak.protocol.status import to_http

HERE = Origin("https", "a.example", 443)


def capability(method: str = "GET", target: str = "/x", **fields: Any) -> Capability:
    return Capability(id="x", method=method, path=target, origin=HERE, target=target, **fields)


def build(given: dict[str, Any], method: str = "GET", target: str = "/x", **fields: Any) -> CapabilityRequest:
    built = build_request(capability(method, target, **fields), given)
    assert isinstance(built, CapabilityRequest), built
    return built


def refused(given: dict[str, Any], **fields: Any) -> list[str]:
    found = build_request(capability(**fields), given)
    assert isinstance(found, list), found
    return [fault.pointer for fault in found]


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
def test_method_without_body_uses_the_query(method: str) -> None:
    built = build({"a": "x y&z", "n": 2, "b": True, "l": ["p", 1], "o": {"k": 1}, "nothing": None}, method)
    assert built.address.target == "/x?a=x%20y%26z&n=2&b=true&l=p&l=1&o=%7B%22k%22%3A1%7D"
    assert (built.body, built.headers) == (b"", {})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_method_with_body_uses_the_body(method: str) -> None:
    built = build({"a": [1], "id": "7"}, method, "/x/{id}")
    assert (built.address.target, json.loads(built.body)) == ("/x/7", {"a": [1]})
    assert built.headers == {"Content-Type": "application/json"}


def test_a_query_of_the_template_stays() -> None:
    assert build({"b": 2}, target="/x?a=1").address.target == "/x?a=1&b=2"


@pytest.mark.parametrize("value", ["", ".", "..", "../a", "..%2Fa"])
def test_a_value_must_not_choose_another_path(value: str) -> None:
    assert refused({"id": value}, target="/x/{id}/y") == ["/id"]


def test_a_value_in_the_path_is_encoded() -> None:
    assert build({"id": "a?b#c"}, target="/x/{id}").address.target == "/x/a%3Fb%23c"


def test_a_parameter_of_the_path_must_be_there() -> None:
    assert refused({}, target="/x/{id}") == [""]


def test_members_go_where_they_are_placed() -> None:
    placements = {
        "trace": Placement("header", "X-Trace"),
        "sid": Placement("cookie", "sid"),
        "tags": Placement("query", "tags", "pipe"),
        "filter": Placement("query", "filter", "json"),
        "doc": Placement("whole-body", "doc"),
    }
    given = {"trace": "t", "sid": "s", "tags": ["a", "b"], "filter": [1], "doc": [1, 2]}
    built = build(given, "POST", placements=placements)
    assert built.address.target == "/x?tags=a%7Cb&filter=%5B1%5D"
    assert built.headers == {"X-Trace": "t", "Cookie": "sid=s", "Content-Type": "application/json"}
    assert built.body == b"[1,2]"


@pytest.mark.parametrize("value", ["a\r\nX: y", "日", "a\0b"])
def test_a_value_adds_no_header(value: str) -> None:
    assert refused({"v": value}, placements={"v": Placement("header", "V")}) == ["/v"]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a; b=c"])
def test_a_value_adds_no_cookie(value: str) -> None:
    [cookie] = build({"v": value}, placements={"v": Placement("cookie", "V")}).headers.values()
    assert set(cookie).isdisjoint(" ;\r\n")


@pytest.mark.parametrize(("place", "name"), [("header", "Host"), ("header", "a b"), ("header", ""), ("cookie", "a=b")])
def test_a_document_must_not_choose_where_a_message_goes_or_ends(place: Any, name: str) -> None:
    assert refused({"v": "x"}, placements={"v": Placement(place, name)}) == ["/v"]


def test_a_form_is_sent_as_a_form() -> None:
    built = build({"a": "x y", "l": [1, 2]}, "POST", media_type="application/x-www-form-urlencoded")
    assert built.body == b"a=x%20y&l=1&l=2"


def test_unsupported_media_type_is_reported() -> None:
    found = build_request(capability("POST", media_type="multipart/form-data"), {"a": 1})
    assert isinstance(found, list)
    assert "multipart/form-data" in found[0].message


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=4), st.text(min_size=1, max_size=12))
def test_every_text_arrives_as_it_was(query: dict[str, str], value: str) -> None:
    query.pop("id", None)
    try:
        built = build_request(capability(target="/x/{id}"), {**query, "id": value})
    except UnicodeEncodeError:
        return
    if isinstance(built, list):
        assert leaves_segment(value)
        return
    path, _, text = built.address.target.partition("?")
    assert unquote(path.removeprefix("/x/")) == value
    assert dict(parse_qsl(text, keep_blank_values=True)) == query


PROBLEM = {"content-type": "application/problem+json; charset=utf-8"}


def turned(body: Any, status: int = 422) -> Any:
    return json.loads(error_body(status, PROBLEM, json.dumps(body).encode()))


@pytest.mark.parametrize(
    "error",
    [
        {"code": "method-violation", "message": "No.", "suggestions": ["BOOK"]},
        {"code": "authorization-required", "message": "No.", "type": "scope-required", "title": "x", "status": 7},
        {"code": "x", "message": "", "details": {"a": [1]}, "detail": "y"},
    ],
)
def test_problem_of_the_face_becomes_the_original_error(error: dict[str, Any]) -> None:
    whole = {"error": error, "task_id": "t-1"}
    number, body = problem(459, json.dumps(whole).encode())
    assert json.loads(error_body(number, PROBLEM, body)) == whole


def test_foreign_problem_is_named_by_its_type() -> None:
    told = {"type": "https://api.example/problems/out-of-credit", "title": "Out of credit", "balance": 3}
    assert turned(told) == {"error": {"code": "out-of-credit", "message": "Out of credit", "balance": 3}}
    assert turned({"title": "x"})["error"]["code"] == "unprocessable-entity"
    assert turned({}, 418)["error"] == {"code": "status-418", "message": ""}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_other_bodies_are_unchanged(body: bytes) -> None:
    assert error_body(500, PROBLEM, body) == body
    assert error_body(500, {"content-type": "text/html"}, b"{}") == b"{}"


@pytest.mark.parametrize("number", [200, 262, 405, 455, 459, 503])
def test_the_number_is_the_one_that_agtp_has(number: int) -> None:
    assert agtp_status(to_http(number), {"agtp-status": str(number)}) == number


@given(st.text(max_size=5))
def test_no_other_text_is_believed(text: str) -> None:
    assert agtp_status(500, {"agtp-status": text}) == 500 or text.isdigit()


@given(
    st.dictionaries(
        st.sampled_from(["type", "title", "status", "detail", "code", "x"]), st.none() | st.text() | st.integers()
    )
)
def test_no_problem_raises(told: dict[str, Any]) -> None:
    assert isinstance(turned(told)["error"]["code"], str)
