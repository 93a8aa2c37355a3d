"""Headers and paths between HTTP and the exchange."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.faces.http import translation
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.messages import Connection, Malformed, Response


@rows(
    "scope, path",
    ({"path": "/room:book", "raw_path": b"/room:book"}, "/room:book"),
    ({"path": "/a/b:find", "raw_path": b"/a%2Fb:find"}, "/a%2Fb:find"),
    ({"path": "/a b", "raw_path": None}, "/a%20b"),
    ({"path": "/api/room:book", "raw_path": b"/api/room:book", "root_path": "/api"}, "/room:book"),
    ({"path": "/api/v1/x", "raw_path": b"/%61pi/v1/x", "root_path": "/api/v1"}, "/x"),
    ({"path": "/api", "raw_path": b"/api", "root_path": "/api"}, "/"),
    ({"path": "/apiary:find", "raw_path": b"/apiary:find", "root_path": "/api"}, "/apiary:find"),
    ({"path": "/room:book", "raw_path": b"/room:book", "root_path": "/api"}, "/room:book"),
    ({"path": "/api/a/b", "raw_path": b"/api/a%2Fb", "root_path": "/api/"}, "/a%2Fb"),
    ({"path": "/api/v1/x/room:book", "raw_path": b"/api%2Fv1/x/room:book", "root_path": "/api/v1"}, "/x/room:book"),
    ({"path": "/api/x/room:book", "raw_path": b"/api%2Fx/room:book", "root_path": "/api"}, "/x/room:book"),
    ({"path": "/api/room:book", "raw_path": b"/room:book", "root_path": "/api"}, "/room:book"),
)
def test_the_path_below_a_mount_keeps_its_encoding(scope: dict[str, object], path: str) -> None:
    assert translation.local_path(scope) == path


@rows("path, left", ("/v1/a", "/a"), ("/v1", "/"), ("/v1x/a", "/v1x/a"), ("/a", "/a"), ("/a/v1", "/a/v1"))
def test_a_prefix_is_removed_if_it_is_present(path: str, left: str) -> None:
    assert translation.without_prefix(path, "/v1") == left


def test_headers_verbs_and_queries_of_a_request_are_read() -> None:
    pairs = [(b"via", b"a"), (b"Agent-ID", b"x"), (b"via", b"b"), (b"task-id", "é".encode()), (b"request-id", b"\xe9")]
    expected = {"via": "a, b", "agent-id": "x", "task-id": "é", "request-id": "é"}
    assert translation.read_headers(pairs, 10) == expected
    assert isinstance(translation.read_headers([(b"a", b"b")] * 3, 2), Malformed)
    found = translation.read_headers([(b"x-agis-grammar", b"AGIS/1.0")], 10)
    assert isinstance(found, dict)
    assert found["method-grammar"] == "AGIS/1.0"
    both = [(b"x-agis-grammar", b"AGIS/1.0"), (b"method-grammar", b"AGIS/1.0")]
    assert isinstance(translation.read_headers(both, 10), dict)
    assert translation.meant("/room:find", {"x-agis-method": " book "}) == ("/room:find", "BOOK")
    assert translation.meant("/room:find", {}) == ("/room", "FIND")
    assert translation.meant("/room", {}) is None
    request = translation.to_request(
        translation.RequestTarget("/a", "FIND", reads=True), "q=a+b%2B", {}, b"", Connection()
    )
    assert (request.query, request.reads) == ("q=a%20b%2B", True)


@rows(
    "pairs",
    *[[(name, b"a"), (name, b"b")] for name in (b"agent-id", b"authorization", b"host", b"idempotency-key")],
    [(b"x-agis-method", b"a"), (b"x-agis-method", b"b")],
    [(b"x-agis-grammar", b"AGIS/2.0"), (b"method-grammar", b"AGIS/1.0")],
)
def test_an_ambiguous_header_may_occur_only_once(pairs: list[tuple[bytes, bytes]]) -> None:
    found = translation.read_headers(pairs, 10)
    assert isinstance(found, Malformed)
    assert (found.status, found.code) == (400, "invalid-header")


@pytest.mark.parametrize("verb", ["\ufb01nd", "f\u0131nd", "\u017fuspend"])
def test_letters_that_only_become_those_of_a_verb_are_none(verb: str) -> None:
    assert translation.meant("/room", {"x-agis-method": verb}) == ("/room", verb)
    assert translation.meant(f"/room:{verb}", {}) is None


@given(st.text(max_size=50))
def test_no_value_of_a_header_breaks_the_response(value: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in value):
        return
    reply = translation.to_http(Response(200, b"{}", headers=(("Task-ID", value),)), [], b"Bearer")
    encoded = dict(reply.headers)[b"task-id"]
    assert not set(b"\r\n\x00") & set(encoded)


@rows("agtp, http, length", (200, 200, True), (263, 201, True), (204, 204, False), (304, 304, False))
def test_a_success_keeps_its_number_in_a_header(agtp: int, http: int, length: bool) -> None:
    reply = translation.to_http(Response(agtp, b"{}" if length else b""), [], b"Bearer")
    headers = dict(reply.headers)
    assert (reply.status, headers[b"agtp-status"]) == (http, b"%d" % agtp)
    assert (b"content-length" in headers) is length


def test_refusals_are_problems_with_stable_titles_and_json_is_the_media_type() -> None:
    error = {"code": "scope-violation", "message": "No.", "required": ["a:b"], "status": 7}
    number, body = translation.problem(455, json.dumps({"status": 455, "error": error, "task_id": "t"}).encode())
    told = json.loads(body)
    assert (number, told["status"], told["agtp_status"]) == (403, 403, 455)
    assert (told["detail"], told["code"], told["required"], told["task_id"]) == ("No.", "scope-violation", ["a:b"], "t")
    assert told["error_status"] == 7
    number, body = translation.problem(404, b"")
    assert (number, json.loads(body)["title"]) == (404, "Not Found")
    for condition, expected in (("credentials-missing", 401), ("consent-required", 403)):
        body = json.dumps({"error": {"type": condition, "code": "x", "message": "y"}}).encode()
        assert translation.problem(262, body)[0] == expected
    assert "agtp_status" not in json.loads(translation.problem_body(431, 431, {"code": "a", "message": "b"}))
    assert json.loads(translation.problem_body(413, 413, {"code": "a", "message": "b"}))["agtp_status"] == 413
    for number, title in ((413, "Content Too Large"), (422, "Unprocessable Content"), (799, "")):
        assert json.loads(translation.problem_body(number, 422, {"code": "a", "message": "b"}))["title"] == title
    assert translation.encode_block(HeaderBlock(("Content-Type", "application/vnd.agtp+json"))) == [
        (b"content-type", b"application/json")
    ]
