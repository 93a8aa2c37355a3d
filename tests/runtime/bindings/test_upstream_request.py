"""Upstream requests: every field in its place, percent-encoded, and nothing of a caller beyond it."""

from __future__ import annotations

from base64 import b64encode
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, unquote

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.deployment.endpoint_text import parse_endpoint
from tests.echo import parts_of
from tests.process import ROOT

from bespeak.contract.handler import ExternalService
from bespeak.contract.http_route import MAX_HEADER, as_text, leaves_segment
from bespeak.contract.schema.validation import Violation
from bespeak.runtime.bindings.upstream import (
    RequestPlan,
    UpstreamCredentials,
    UpstreamField,
    form_body,
    json_body,
    multipart_body,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SECRET = "s3cr3t-value"


def plan(credentials: UpstreamCredentials | None = None, **fields: Any) -> RequestPlan:
    handler = ExternalService(**{"url": "https://u.example/rooms", "method": "POST", **fields})
    return RequestPlan(handler, credentials or UpstreamCredentials())


def built(given: dict[str, Any], credentials: UpstreamCredentials | None = None, **fields: Any) -> httpx.Request:
    request = plan(credentials, **fields).build(given)
    assert isinstance(request, httpx.Request), request
    return request


def refused(given: dict[str, Any], credentials: UpstreamCredentials | None = None, **fields: Any) -> list[str]:
    faults = plan(credentials, **fields).build(given)
    assert isinstance(faults, list)
    assert faults
    return [fault.pointer for fault in faults]


def target(request: httpx.Request) -> str:
    return request.url.raw_path.decode("ascii")


def query(request: httpx.Request) -> list[tuple[str, str]]:
    return parse_qsl(request.url.query.decode("ascii"), keep_blank_values=True, errors="strict")


def cookies(request: httpx.Request) -> dict[str, str]:
    return {name: unquote(morsel.value) for name, morsel in SimpleCookie(request.headers["cookie"]).items()}


@rows(
    "url, given, path",
    ("/files/{name}.json", {"name": "a b"}, "/files/a%20b.json"),
    ("/{a}-{b}", {"a": "1", "b": 2}, "/1-2"),
    ("/{a}/{a}", {"a": "é"}, "/%C3%A9/%C3%A9"),
    ("/x/{a}", {"a": "b?c=d#e"}, "/x/b%3Fc%3Dd%23e"),
    ("/x/{a}", {"a": "100%25"}, "/x/100%2525"),
    ("/x/{a}", {"a": "b;c=d@e:f"}, "/x/b%3Bc%3Dd%40e%3Af"),
    ("/x/{a}", {"a": [1, "b", True]}, "/x/1%2Cb%2Ctrue"),
    ("/x/{a}", {"a": False}, "/x/false"),
    ("/x?room={a}&v=2", {"a": "1&2/.."}, "/x?room=1%262%2F..&v=2"),
    ("/x#frag{a}", {"a": "1"}, "/x"),
)
def test_a_field_of_the_url_is_percent_encoded(url: str, given: dict[str, Any], path: str) -> None:
    assert target(built(given, url=f"https://u.example{url}", method="GET")) == path


@rows(
    "url, given, at",
    ("/{a}", {}, "/a"),
    ("/{a}", {"a": None}, "/a"),
    ("/{a}", {"a": ""}, "/a"),
    ("/{a}", {"a": "."}, "/a"),
    ("/{a}", {"a": ".."}, "/a"),
    ("/{a}", {"a": "../../admin"}, "/a"),
    ("/{a}/{a}", {"a": "%2e%2e"}, "/a"),
    ("/{a}.json", {"a": ".."}, "/a"),
    ("/{a}", {"a": []}, "/a"),
    ("/{a}", {"a": ["x", "y,z"]}, "/a/1"),
    ("/.{a}", {"a": "."}, "/a"),
    ("/{a}{b}", {"a": ".", "b": "."}, "/a /b"),
)
def test_a_value_that_would_choose_another_resource_is_refused(url: str, given: dict[str, Any], at: str) -> None:
    assert refused(given, url=f"https://u.example{url}") == at.split()


@given(TEXT, TEXT)
def test_a_path_has_the_segments_of_its_template(first: str, second: str) -> None:
    made = plan(url="https://u.example/a/{first}/b/x-{second}.json", method="GET").build(
        {"first": first, "second": second}
    )
    if isinstance(made, list):
        assert leaves_segment(first) or leaves_segment(second)
        return
    assert (made.url.host, made.url.port, made.url.query) == ("u.example", None, b"")
    segments = [unquote(segment, errors="strict") for segment in target(made).split("/")]
    assert segments == ["", "a", first, "b", f"x-{second}.json"]


def test_query_fields_go_into_the_query_whatever_the_method() -> None:
    request = built(
        {"page": 2, "all": True, "none": None, "tags": ["a", "b"], "name": "x"}, query=("page", "all", "none", "tags")
    )
    assert query(request) == [("page", "2"), ("all", "true"), ("tags", "a"), ("tags", "b")]
    assert msgspec.json.decode(request.read()) == {"name": "x"}


def test_styles_apply_to_fields_in_the_query_because_of_the_method() -> None:
    request = built({"a": [1, 2], "b": {"c": 3}, "d": [4]}, method="GET", lists={"a": "comma", "b": "deep"})
    assert target(request) == "/rooms?a=1,2&b%5Bc%5D=3&d=%5B4%5D"


def test_renames_hold_in_query_body_and_form() -> None:
    names = {"page": "pageNo", "name": "fullName"}
    request = built({"page": 1, "name": "x"}, query=("page",), input_transform=names)
    assert query(request) == [("pageNo", "1")]
    assert request.read() == b'{"fullName":"x"}'
    assert built({"name": "x"}, body="form", input_transform=names).read() == b"fullName=x"
    # By the contract's names a style or a file is given, by the upstream's it is sent.
    request = built({"f": "YQ=="}, body="multipart", files=("f",), input_transform={"f": "upload"})
    assert b'name="upload"; filename="upload"' in request.read()


def test_fields_without_a_body_go_into_the_query_beside_that_of_the_url() -> None:
    request = built({"a": 1}, body="none")
    assert (target(request), request.read()) == ("/rooms?a=1", b"")
    request = built({"a": 1, "items": [1, 2]}, body_field="items")
    assert (target(request), request.read()) == ("/rooms?a=1", b"[1,2]")
    request = built({}, body_field="it")
    assert request.read() == b""
    assert "content-type" not in request.headers
    request = built({"page": 3}, method="GET", url="https://u.example/x?page=1&sig=a%2Bb&flag")
    assert target(request) == "/x?sig=a%2Bb&flag&page=3"


@pytest.mark.parametrize("value", [[1], "text", 3, None, {"a": 1}])
def test_one_field_can_be_the_whole_body(value: Any) -> None:
    request = built({"it": value}, body_field="it")
    assert msgspec.json.decode(request.read()) == value
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS"])
def test_a_body_can_be_asked_for_with_any_method(method: str) -> None:
    request = built({"a": 1}, method=method, body="json")
    assert (target(request), request.read()) == ("/rooms", b'{"a":1}')


@pytest.mark.parametrize(
    ("value", "sent"),
    [("de-CH", b"de-CH"), ("é", b"\xe9"), (3, b"3"), (True, b"true"), (["a", "b"], b"a,b"), ("", b"")],
)
def test_a_field_becomes_a_header(value: Any, sent: bytes) -> None:
    request = built({"lang": value}, header_fields={"lang": "Accept-Language"})
    assert dict(request.headers.raw)[b"accept-language"] == sent
    assert request.read() == b"{}"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00", " a", "a\t", "日", "x" * (MAX_HEADER + 1)])
def test_a_value_no_header_can_hold_is_refused(value: str) -> None:
    assert refused({"lang": value}, header_fields={"lang": "X-Lang"}) == ["/lang"]
    # Within a list it is no better.
    assert refused({"lang": [value, value]}, header_fields={"lang": "X-Lang"}) == ["/lang"]


@given(TEXT)
def test_a_header_arrives_as_it_was_or_is_refused(value: str) -> None:
    made = plan(header_fields={"lang": "X-Lang"}).build({"lang": value})
    if isinstance(made, httpx.Request):
        assert dict(made.headers.raw)[b"x-lang"].decode("latin-1") == value
        assert not {"\r", "\n", "\0"} & {*value}


def test_headers_and_cookies_are_shared_and_never_replaced() -> None:
    credentials = UpstreamCredentials(headers={"X-Role": "guest"})
    request = built({"role": "admin"}, credentials, header_fields={"role": "x-role"})
    assert request.headers.get_list("x-role") == ["guest"]
    credentials = UpstreamCredentials(headers={"Cookie": "v=1"}, cookies={"session": SECRET})
    request = built({"theme": "dark", "n": 2}, credentials, cookie_fields={"theme": "Theme", "n": "n"})
    assert request.headers.get_list("cookie") == [f"v=1; session={SECRET}; Theme=dark; n=2"]


@given(TEXT, st.lists(TEXT.filter(lambda text: "," not in text), min_size=1, max_size=3))
def test_no_value_leaves_its_cookie(value: str, several: list[str]) -> None:
    request = built(
        {"a": value, "b": several}, UpstreamCredentials(cookies={"sid": "1"}), cookie_fields={"a": "A", "b": "B"}
    )
    header = request.headers["cookie"]
    assert header.isascii()
    assert header.isprintable()
    assert [crumb.partition("=")[0] for crumb in header.split("; ")] == ["sid", "A", "B"]
    # The standard library reads `$` at the start of a name as its own, never within a value.
    assert [unquote(crumb.partition("=")[2]) for crumb in header.split("; ")] == ["1", value, ",".join(several)]


@pytest.mark.parametrize("value", ["a; sid=2", 'a"b', "a,b", "a\\b", "a\r\nSet: 1", "x y", "100%3B"])
def test_a_hostile_cookie_is_read_as_one_value(value: str) -> None:
    assert cookies(built({"a": value}, cookie_fields={"a": "A"})) == {"A": value}
    assert refused({"a": "x" * MAX_HEADER}, cookie_fields={"a": "A"}) == [""]


def test_credentials_are_in_the_query_and_input_cannot_replace_them() -> None:
    credentials = UpstreamCredentials(query={"api_key": f"{SECRET}&admin=1"})
    request = built({"a": 1}, credentials, method="GET")
    assert query(request) == [("a", "1"), ("api_key", f"{SECRET}&admin=1")]
    assert refused({"api_key": "mine"}, credentials, method="GET") == ["/api_key"]
    assert refused(
        {"key": {"x": 1}}, UpstreamCredentials(query={"key[x]": "1"}), method="GET", lists={"key": "deep"}
    ) == [""]
    # One that is left in the URL is replaced.
    request = built({}, credentials, method="GET", url="https://u.example/x?api_key=old&v=1")
    assert query(request) == [("v", "1"), ("api_key", f"{SECRET}&admin=1")]


def test_nothing_shows_credentials() -> None:
    credentials = UpstreamCredentials({"Authorization": SECRET}, {"key": SECRET}, {"sid": SECRET})
    handler = ExternalService(
        url="https://u.example/",
        method="GET",
        headers={"A": SECRET},
        query_credentials={"key": SECRET},
        cookie_credentials={"sid": SECRET},
    )
    assert SECRET not in repr(credentials)
    assert SECRET not in repr(handler)
    assert SECRET not in repr(RequestPlan(handler, credentials))
    assert SECRET not in str(RequestPlan(handler, credentials).build({"a": "x" * 100_000}))


@pytest.mark.parametrize(
    "given", [{"a": "x" * 100_000}, {"a": list(range(100_000))}, {f"n{number}": 1 for number in range(20_000)}]
)
def test_an_input_too_long_for_a_url_is_refused(given: dict[str, Any]) -> None:
    assert refused(given, method="GET", lists={"a": "repeat"}) == [""]


@rows(
    "fields",
    {},
    {"method": "GET"},
    {"url": "https://u.example/{a}"},
    {"header_fields": {"a": "X-A"}},
    {"cookie_fields": {"a": "A"}},
    {"body": "form"},
    {"body": "multipart"},
)
def test_half_a_character_is_refused(fields: dict[str, Any]) -> None:
    assert len(refused({"a": "x\ud800"}, **fields)) == 1


@pytest.mark.parametrize(("body", "kind"), [("form", "application/x-www-form-urlencoded"), ("multipart", "multipart/")])
def test_a_form_says_what_it_is_whatever_is_configured(body: str, kind: str) -> None:
    credentials = UpstreamCredentials(headers={"Content-Type": "application/json"})
    assert built({"a": "1"}, credentials, body=body).headers.get_list("content-type")[0].startswith(kind)


@pytest.mark.parametrize(("answer", "accept"), [("json", "application/json"), ("text", "*/*"), ("none", "*/*")])
def test_the_answer_that_is_wanted_is_asked_for(answer: str, accept: str) -> None:
    assert built({}, answer=answer).headers["accept"] == accept


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("p", "q", "h", "c", "b", "other"), JSON)))
def test_every_input_becomes_a_request_or_a_refusal_and_each_field_stays_in_its_place(given: dict[str, Any]) -> None:
    made = plan(
        UpstreamCredentials({"Authorization": SECRET}, {"key": SECRET}),
        url="https://u.example/x/{p}",
        query=("q",),
        header_fields={"h": "X-H"},
        cookie_fields={"c": "C"},
        input_transform={"b": "B"},
    ).build(given)
    if isinstance(made, list):
        assert made
        assert SECRET not in str(made)
        return
    path, _, _ = target(made).partition("?")
    assert path.count("/") == 2
    assert {name for name, _ in query(made)} <= {"q", "key"}
    assert query(made)[-1] == ("key", SECRET)
    assert made.headers["authorization"] == SECRET
    known = {"host", "accept", "accept-encoding", "connection", "user-agent", "authorization", "content-type"}
    assert {*made.headers} <= {*known, "content-length", "x-h", "cookie"}
    sent = {"B" if name == "b" else name: value for name, value in given.items() if name in ("b", "other")}
    assert msgspec.json.decode(made.read()) == sent
    if isinstance(given.get("q"), str):
        assert query(made)[0] == ("q", given["q"])
    if isinstance(given.get("p"), str | int):
        assert unquote(path.rpartition("/")[2]) == as_text(given["p"])


def test_the_request_that_the_guide_shows_is_the_one_that_is_sent() -> None:
    text = (ROOT / "docs_src" / "endpoint-files" / "books.toml").read_text("utf-8")
    endpoint, findings = parse_endpoint(text, "books.toml")
    assert endpoint is not None
    assert findings == []
    assert isinstance(endpoint.handler, ExternalService)
    given = {
        "library": "north wing",
        "shelf": ["sea", "birds"],
        "language": "de",
        "scan": "aGVsbG8=",
        "title": "Voyage",
    }
    request = RequestPlan(endpoint.handler, UpstreamCredentials(query={"api_key": "k"})).build(given)
    assert isinstance(request, httpx.Request)
    assert target(request) == "/v1/libraries/north%20wing/books?shelf=sea,birds&api_key=k"
    assert request.headers["accept-language"] == "de"
    assert sorted(parts_of(request.headers["content-type"], request.read()), key=str) == [
        ("file", "file", b"hello"),
        ("title", None, b"Voyage"),
    ]


UPSTREAM_BODY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = UPSTREAM_BODY_TEXT | st.integers(-(2**53), 2**53) | st.booleans()


def fields(values: dict[str, Any], style: str = "repeat") -> dict[str, UpstreamField]:
    return {name: UpstreamField(name, value, style) for name, value in values.items()}


def received(values: dict[str, Any], *files: str) -> list[tuple[str | None, str | None, bytes]]:
    """Parse the parts as the upstream would."""
    faults: list[Violation] = []
    parts = multipart_body(fields(values), files, faults)
    assert faults == []
    request = httpx.Request("POST", "https://upstream.example/", files=parts)
    return parts_of(request.headers["content-type"], request.read())


def upstream_body_refused(values: dict[str, Any], *files: str) -> list[str]:
    faults: list[Violation] = []
    multipart_body(fields(values), files, faults)
    return [fault.pointer for fault in faults]


def test_forms_and_multipart_bodies_have_texts_files_and_json() -> None:
    body = form_body(fields({"a": "x y&z", "b": True, "c": [1, 2], "d": {"e": "é"}, "f": None}), [])
    assert body == b"a=x%20y%26z&b=true&c=1&c=2&d=%7B%22e%22%3A%22%C3%A9%22%7D"
    content = bytes(range(256))
    parts = received({"photo": b64encode(content).decode(), "title": "Zimmer 12 – süß", "n": 2, "gone": None}, "photo")
    assert parts == [("photo", "photo", content), ("title", None, "Zimmer 12 – süß".encode()), ("n", None, b"2")]


@given(st.dictionaries(UPSTREAM_BODY_TEXT, VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_a_form_is_decoded_to_the_same_fields(values: dict[str, Any]) -> None:
    sent = [
        (name, item if isinstance(item, str) else msgspec.json.encode(item).decode())
        for name, value in values.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    assert parse_qsl(form_body(fields(values), []).decode("ascii"), keep_blank_values=True, errors="strict") == sent


@given(st.dictionaries(UPSTREAM_BODY_TEXT, VALUES | st.lists(VALUES, max_size=3) | st.none(), max_size=6))
def test_json_is_the_object_itself(values: dict[str, Any]) -> None:
    assert msgspec.json.decode(json_body(fields(values))) == values


def test_several_files_and_texts_are_several_parts_of_one_name() -> None:
    parts = received({"photo": ["YQ==", "Yg=="], "tags": ["x", "y"], "meta": {"a": 1}}, "photo")
    assert [(name, content) for name, _, content in parts] == [
        ("photo", b"a"),
        ("photo", b"b"),
        ("tags", b"x"),
        ("tags", b"y"),
        ("meta", b'{"a":1}'),
    ]


@pytest.mark.parametrize("value", ["no base64!", "YQ", "YQ=", "ä", 3, True, {"a": 1}, "Y Q=="])
def test_a_file_that_is_not_base64_is_refused_with_its_pointer(value: Any) -> None:
    assert upstream_body_refused({"photo": value}, "photo") == ["/photo"]
    assert upstream_body_refused({"photo": ["YQ==", value]}, "photo") == ["/photo/1"]


@given(st.binary(max_size=200), UPSTREAM_BODY_TEXT)
def test_no_content_ends_its_part(content: bytes, text: str) -> None:
    # Whatever looks like a boundary or a header inside of a part stays there.
    hostile = b"\r\n--boundary--\r\nContent-Disposition: form-data; name=evil\r\n\r\n" + content
    parts = received({"photo": b64encode(hostile).decode(), "title": hostile.decode("latin-1") + text}, "photo")
    assert parts == [("photo", "photo", hostile), ("title", None, (hostile.decode("latin-1") + text).encode())]


@pytest.mark.parametrize("name", ['a"; filename="evil', "a\r\nX-Evil: 1", "ä"])
def test_no_name_leaves_its_place(name: str) -> None:
    request = httpx.Request("POST", "https://u.example/", files=multipart_body(fields({name: "x"}), (), []))
    head = request.read().partition(b"\r\n\r\n")[0]
    assert head.count(b"\r\n") == 1
    assert b'filename="' not in head
