"""The HTTP face over an ASGI transport: routes, methods, refusals, limits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.app.server.http_face import make_face
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.face import CONNECTION, Origins, connection_of
from bespeak.protocol.exchange.messages import Connection

TEXT = {"room_id": {"type": "string"}, "guests": {"type": "integer"}}
BOOK = make_endpoint("BOOK", "/room", echo, properties=TEXT, impact="irreversible", output={"type": "object"})
FIND = make_endpoint("FIND", "/rooms/{room_id}", echo, properties=TEXT)
URL = "https://rooms.example"


def client(*endpoints, **options):
    face = make_face(build(*endpoints, **options).dispatcher, HttpSettings())
    return httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test")


async def _ask(method, target, *endpoints, json=None, headers=None):
    async with client(*endpoints) as http:
        return await http.request(method, target, json=json, headers=headers or {})


def ask(*args, **kwargs):
    return asyncio.run(_ask(*args, **kwargs))


@pytest.mark.requirement("AGIS-10.1-1")
def test_endpoints_are_called_by_verb_or_header_and_readable_ones_by_get() -> None:
    reply = ask("POST", "/room:book", BOOK, json={"room_id": "12"})
    assert (reply.status_code, reply.json(), reply.headers["agtp-status"]) == (200, {"room_id": "12"}, "200")
    assert (reply.headers["content-type"], reply.headers["cache-control"]) == ("application/json", "no-store")
    assert ask("GET", "/rooms/a%20b:find?guests=2", FIND).json() == {"room_id": "a b", "guests": 2}
    reply = ask("POST", "/room", BOOK, json={"room_id": "7"}, headers={"X-AGIS-Method": "book"})
    assert reply.json() == {"room_id": "7"}
    assert ask("POST", "/room", BOOK, json={}).json()["routes"] == ["/room:book"]
    assert ask("OPTIONS", "/rooms/1:find", FIND).headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert ask("OPTIONS", "/room:book", BOOK).headers["allow"] == "POST, OPTIONS"


@rows(
    "method, target, given, refused",
    ("GET", "/rooms/1:find?guests=2", {"guests": 3}, (400, "invalid-body", None)),
    ("GET", "/room:book?room_id=1", None, (405, "method-not-allowed", "POST, OPTIONS")),
    ("PUT", "/room:book", {}, (405, "method-not-allowed", "POST, OPTIONS")),
    ("POST", "/room", {}, (405, "method-not-allowed", "OPTIONS")),
    ("POST", "/room:book", {"room_id": "x" * 1_100_000}, (413, "content-too-large", None)),
    ids=["body of a GET", "GET that would change something", "PUT", "no verb", "too large"],
)
def test_a_request_that_calls_nothing_is_refused(method, target, given, refused):
    reply = ask(method, target, BOOK, FIND, json=given)
    assert (reply.status_code, reply.json()["code"], reply.headers.get("allow")) == refused


def with_floor(floor, **semantic):
    """An endpoint whose floor is described by a shared definition."""
    found = make_endpoint("FIND", "/room", echo, **semantic)
    definitions = {"Floor": {"enum": [0, 9]}, "Guest": {"type": "object"}}
    schema = {**found.input_schema, "properties": {"floor": floor}, "$defs": definitions}
    return replace(found, input_schema=schema)


def test_a_get_takes_an_optional_enum_and_says_why_it_is_refused() -> None:
    endpoint = with_floor({"anyOf": [{"$ref": "#/$defs/Floor"}, {"type": "null"}], "default": None})
    assert ask("GET", "/room:find?floor=9", endpoint).json() == {"floor": 9}
    assert ask("GET", "/room:find?floor=1", endpoint).status_code == 422
    guest = ask("GET", "/room:find", with_floor({"$ref": "#/$defs/Guest"})).json()
    assert "cannot be called with GET, because a query cannot express 'floor'" in guest["detail"]
    assert "because it may change something" in ask("GET", "/room:book", BOOK).json()["detail"]


LEGACY = Policies(
    methods=MethodPolicy(
        legacy=("GET", "POST", "DELETE", "PATCH"),
        redirects=(Redirect(from_method="SCAN", from_path="/room", to_method="BOOK", to_path="/room"),),
    ),
)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@rows("target", "/room", "/job", "/room:get", "/room:delete", "/job:post", "/job:patch", "/room:scan")
def test_a_get_changes_nothing_through_legacy_verbs_and_redirects(method, target):
    called = []
    writes = [
        make_endpoint(verb, path, lambda input: called.append(input) or {}, impact="irreversible")  # noqa: A006
        for verb, path in (("BOOK", "/room"), ("REMOVE", "/room"), ("FETCH", "/room"), ("EXECUTE", "/job"))
    ]

    async def run():
        async with client(*writes, make_endpoint("QUERY", "/guests", echo), policies=LEGACY) as http:
            assert (await http.request("GET", "/guests")).status_code == 200
            return await http.request(method, target)

    assert asyncio.run(run()).status_code == 405
    assert not called


@pytest.mark.parametrize("method", ["TRACE", "QUERY", "PROPFIND", "SEARCH", "OPTIONS"])
def test_a_header_does_not_turn_a_method_that_promises_to_read_into_a_call(method):
    called = []
    write = make_endpoint("BOOK", "/room", lambda input: called.append(input) or {}, impact="irreversible")  # noqa: A006
    reply = ask(method, "/room", write, headers={"X-AGIS-Method": "BOOK"})
    assert (reply.status_code, reply.headers["allow"]) == (204 if method == "OPTIONS" else 405, "POST, OPTIONS")
    assert not called


@rows("target, agtp, http", ("/room:steal", 459, 400), ("/nothing:book", 404, 404), ("/room/book:book", 460, 400))
def test_a_refusal_is_a_problem_and_keeps_its_number(target, agtp, http):
    reply = ask("POST", target, BOOK, json={})
    assert (reply.status_code, reply.headers["agtp-status"]) == (http, str(agtp))
    assert reply.headers["content-type"] == "application/problem+json"
    told = reply.json()
    assert (told["status"], told["agtp_status"]) == (http, agtp)
    assert told["detail"]


def test_a_missing_scope_is_403_and_a_missing_credential_401():
    guarded = make_endpoint("BOOK", "/room", echo, scopes=("room:book",))
    nobody = ask("POST", "/room:book", guarded, json={})
    assert (nobody.status_code, nobody.headers["agtp-status"]) == (401, "262")
    # Nothing but a header is asked for in open mode.
    assert nobody.headers["www-authenticate"] == 'Agent-ID realm="test.example"'
    wrong = ask("POST", "/room:book", guarded, json={}, headers={"Agent-ID": AGENT, "Authority-Scope": "room:look"})
    assert (wrong.status_code, wrong.headers["agtp-status"]) == (403, "455")


@pytest.mark.parametrize(("namespace", "wanted", "number"), [(None, "b", 200), ("a", "a", 200), ("a", "b", 404)])
def test_the_namespace_of_another_service_is_not_found_where_there_is_one(namespace, wanted, number):
    endpoint = replace(BOOK, namespace=namespace)
    reply = ask("POST", "/room:book", endpoint, json={}, headers={"X-AGIS-Namespace": wanted})
    assert reply.status_code == number


def test_the_namespace_of_an_internal_endpoint_is_not_disclosed():
    secret = replace(make_endpoint("BOOK", "/vault", echo, properties=TEXT), namespace="vaults", internal=True)
    rooms = replace(FIND, namespace="rooms")
    wrong = ask("POST", "/vault:book", rooms, secret, headers={"X-AGIS-Namespace": "other"})
    assert (wrong.status_code, "rooms" in wrong.text) == (404, True)
    named = ask("POST", "/vault:book", rooms, secret, headers={"X-AGIS-Namespace": "vaults"})
    assert named.text.replace("vaults", "other") == wrong.text
    assert ask("POST", "/vault:book", rooms, secret).status_code == 200


@pytest.mark.parametrize("public", [True, False])
def test_a_404_refers_to_the_available_documents(public):
    policies = Policies(anonymous_discovery=public)

    async def run():
        async with client(FIND, policies=policies) as http:
            return await http.get("/nothing")

    assert ("/openapi.json and /llms.txt list" in asyncio.run(run()).json()["detail"]) is public


async def _drive(scope, *messages):
    face = make_face(build(BOOK).dispatcher, HttpSettings())
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    base = {"method": "POST", "path": "/room:book", "query_string": b"", "headers": []}
    await face({**base, **scope}, receive, send)
    return sent, waiting


def _part(body):
    return {"type": "http.request", "body": body, "more_body": True}


@pytest.mark.anyio
@rows(
    "headers, messages, status, unread",
    ([(b"content-length", b"99999999")], [_part(b"")], 413, 1),  # declared too large
    ([], [_part(b"x" * 600_000)] * 3, 413, 1),  # grows too large
    ([], [_part(b"{"), {"type": "http.disconnect"}], 400, 0),  # the caller leaves
)
async def test_a_body_that_is_too_large_or_incomplete_is_read_no_further(headers, messages, status, unread):
    sent, waiting = await _drive({"type": "http", "headers": headers}, *messages)
    assert (sent[0]["status"], len(waiting)) == (status, unread)


@pytest.mark.anyio
async def test_web_sockets_are_turned_away_and_the_lifespan_protocol_is_followed() -> None:
    sent, _ = await _drive({"type": "websocket"}, {"type": "websocket.connect"})
    assert sent[0]["type"] == "websocket.close"
    sent, _ = await _drive({"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    assert [message["type"] for message in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.anyio
async def test_the_certificate_of_a_proxy_is_not_that_of_the_client():
    known = Connection(face="http", address="10.0.0.1", certificate=b"the proxy's")
    own = {"state": {CONNECTION: known}, "client": ("10.0.0.1", 1)}
    assert connection_of(own) is known
    found = connection_of({**own, "client": ("203.0.113.9", 2), "scheme": "https"})
    assert (found.address, found.certificate, found.secure, found.answered) == ("203.0.113.9", None, True, 1)
    assert connection_of({}).address == ""


@rows("host", "localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "127.0.0.2", "[::1]:80", "rooms.example")
def test_a_service_on_this_machine_answers_as_itself(host: str) -> None:
    assert Origins(url=URL, loopback=True).check_host({"host": host}) is None


@rows(
    "host",
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "[", "x@localhost"),
    "x" * 5000,
    *("localhost/.evil.example", "localhost#.evil.example", "localhost?evil.example", "local\thost"),
    *("localhost\\.evil.example", "127.1", "2130706433"),
    *("[::1].evil.example", "[::1]evil.example:80", "evil.example[::1]", "[::1]:80:80", "[[::1]]"),
)
def test_a_bent_name_is_not_served(host: str) -> None:
    found = Origins(url=URL, loopback=True).check_host({"host": host})
    assert (found.status, found.code) == (421, "host-not-served")
    assert len(found.message) < 300


@rows("origin", "https://rooms.example", "https://rooms.example:443", "https://shop.example", "http://here:81")
def test_own_pages_and_those_let_in_may_call(origin: str) -> None:
    origins = Origins(url=URL, allowed=("https://shop.example",))
    assert origins.check_origin({"origin": origin, "host": "here:81"}) is None


@rows(
    "origin",
    *("null", "", "https://evil.example", "http://shop.example", "https://shop.example.evil.example"),
    *("http://here", "https://shop.example:444", "https://x@shop.example", "https://shop.example/"),
    *("https://shop.example#.evil.example", "https://shop.example, https://evil.example", "file://"),
    *("https://[", "x" * 5000, f"https://shop.example:{'0' * 300}443"),
)
def test_other_pages_may_not(origin: str) -> None:
    found = Origins(url=URL, allowed=("https://shop.example",)).check_origin({"origin": origin, "host": "here:81"})
    assert (found.status, found.code) == (403, "origin-not-allowed")


def test_every_origin_passes_a_wildcard_and_user_info_is_not_part_of_one() -> None:
    assert Origins().check_host({"host": "anything.example"}) is None
    assert Origins(allowed=("*",)).check_origin({"origin": "https://evil.example"}) is None
    assert Origins().check_origin({}) is None
    assert Origins().check_origin({"origin": "https://evil.example", "host": "x@evil.example"}) is not None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_gets_a_verdict(origin: str, host: str) -> None:
    origins = Origins(loopback=True)
    origins.check_origin({"origin": origin, "host": host})
    origins.check_host({"host": host})
