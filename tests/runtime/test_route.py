"""Text from the path and the query becomes the JSON value a property asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.process import serving
from tests.service import AGENT, Bench, build, echo, make_endpoint

import bespeak
from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.headers import MEDIA_AGTP
from bespeak.protocol.exchange.messages import Context, Request
from bespeak.protocol.exchange.token_hints import TokenHints
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Auditor, Exchange
from bespeak.runtime.route import Shaping, plan_coercions, read_boolean, read_integer, read_number
from bespeak.state.audit.record import Payload, request_hash


@given(st.integers() | st.integers(-(10**298), 10**298))
def test_every_integer_is_read_back(number: int) -> None:
    assert read_integer(str(number)) == number


def test_query_values_are_read_by_their_declared_types() -> None:
    assert [read_integer(text) for text in ("2.0", "-3.00", "1800000000.0")] == [2, -3, 1800000000]
    assert [read_boolean(text) for text in ("true", "false", "True", "1", "")] == [True, False, "True", "1", ""]
    schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "u": {"type": ["integer", "null"]}}}
    assert plan_coercions(schema) == {"n": read_integer, "u": read_integer}
    assert plan_coercions({}) == {}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_back(number: float) -> None:
    assert read_number(repr(number)) == number


@pytest.mark.parametrize(
    "text", ["", "-", "+", "1.5", "1.", ".0", "-.0", "1.0.0", "٣", "1_000", "0x10", " 1", "1" * 301, "²"]
)
def test_an_invalid_integer_stays_text_for_the_schema_to_refuse(text: str) -> None:
    assert read_integer(text) == text


@pytest.mark.parametrize("text", ["", "inf", "nan", "-Infinity", "one", "1e999", "1_0", " 1.5", "1.", ".5"])
def test_text_without_a_json_number_stays_text(text: str) -> None:
    assert read_number(text) == text


OLD, NEW = "2026-01-01T00:00:00Z", "2026-12-01T10:00:00Z"
ROOM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "room_id": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}, "mail": {"type": "string"}}},
        "updated_at": {"type": "string", "format": "date-time"},
    },
    "required": ["room_id", "note"],
}
ROOMS = {
    "type": "object",
    "properties": {"rooms": {"type": "array", "items": ROOM}, "next": {"type": ["string", "null"]}},
    "required": ["rooms"],
}
TAKEN = {"room_id": "1", "note": None, "owner": {"name": "Ann", "mail": ""}, "updated_at": OLD}
FREE = {"room_id": "2", "note": "sea", "owner": {}, "updated_at": NEW}


def giving(output: Any, calls: list[int] | None = None) -> Callable[..., Any]:
    def handler(input: dict[str, Any]) -> Any:  # noqa: A002
        if calls is not None:
            calls.append(1)
        return output

    return handler


QUERY = replace(
    make_endpoint("QUERY", "/rooms", giving({"rooms": [TAKEN, FREE], "next": None}), output=ROOMS),
    since="rooms[].updated_at",
)
FETCH = replace(
    make_endpoint("FETCH", "/rooms/{room_id}", giving(TAKEN), properties={"room_id": {"type": "string"}}, output=ROOM),
    since="updated_at",
)
BOOK = make_endpoint("BOOK", "/room", giving(TAKEN), output=ROOM, impact="irreversible")
ARRAY = replace(
    make_endpoint("QUERY", "/suites", giving([TAKEN, FREE]), output={"type": "array", "items": ROOM}),
    since="[].updated_at",
)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return build(QUERY, FETCH, BOOK, ARRAY)


def refusal(bench: Bench, *request: Any) -> tuple[int, str]:
    reply = bench.send(*request)
    return reply.status, reply.error["code"]


CASES: list[tuple[str, Any]] = [
    ("fields=next", {"next": None}),
    ("fields=rooms.room_id", {"rooms": [{"room_id": "1"}, {"room_id": "2"}]}),
    ("fields=rooms.owner.name,next", {"rooms": [{"owner": {"name": "Ann"}}, {"owner": {}}], "next": None}),
    (
        "compact=true",
        {
            "rooms": [
                {"room_id": "1", "note": None, "owner": {"name": "Ann"}, "updated_at": OLD},
                {"room_id": "2", "note": "sea", "updated_at": NEW},
            ]
        },
    ),
    ("compact=false", {"rooms": [TAKEN, FREE], "next": None}),
    ("since=2026-06-01", {"rooms": [FREE], "next": None}),
    ("since=2026-12-01T12:00:00%2B02:00", {"rooms": [], "next": None}),
    ("since=2026-06-01&compact=true&fields=rooms.owner,rooms.room_id", {"rooms": [{"room_id": "2"}]}),
    ("fields=next&fields=rooms.room_id", {"rooms": [{"room_id": "1"}, {"room_id": "2"}]}),
]


@pytest.mark.parametrize(("query", "answer"), CASES)
def test_a_hint_makes_the_answer_smaller(bench: Bench, query: str, answer: Any) -> None:
    reply = bench.send("QUERY", f"/rooms?{query}")
    assert (reply.status, reply.json) == (200, answer)
    assert reply.header("Content-Type") == MEDIA_AGTP


def test_a_compact_output_stays_valid() -> None:
    either = {"oneOf": [{"properties": {"note": {"type": "string"}}}, {"properties": {"note": {"type": "null"}}}]}
    output = {"type": "object", "properties": {"note": {}, "owner": {}}, **either}
    whole = {"note": None, "owner": None}
    bench = build(make_endpoint("QUERY", "/rooms", giving(whole), output=output))
    assert bench.send("QUERY", "/rooms?compact=true").json == whole


def test_an_object_that_has_not_changed_is_not_modified(bench: Bench) -> None:
    reply = bench.send("FETCH", "/rooms/1?since=2026-06-01", task_id="t-1")
    assert (reply.status, reply.response.body, reply.header("Content-Type")) == (304, b"", None)
    assert (reply.header("Task-ID"), reply.header("Server-ID")) == ("t-1", "test.example")
    assert bench.send("FETCH", "/rooms/1?since=2025-06-01&fields=room_id").json == {"room_id": "1"}
    # A list alone is shaped by its items, and an action is shaped too.
    assert bench.send("QUERY", "/suites?fields=room_id&since=2026-06-01").json == [{"room_id": "2"}]
    assert bench.send("BOOK", "/room?fields=room_id", {}).json == {"room_id": "1"}


@rows(
    "query, code",
    ("compact=yes", "invalid-token-hint"),
    ("fields=", "invalid-token-hint"),
    ("since=soon", "invalid-token-hint"),
    ("fields=rooms.idd", "unknown-fields"),
    ("since=2026-01-01", "since-not-supported"),
)
def test_a_hint_that_cannot_be_followed_is_refused(query: str, code: str) -> None:
    calls: list[int] = []
    plain = make_endpoint("QUERY", "/rooms", giving({"rooms": []}, calls), output=ROOMS)
    assert refusal(build(plain), "QUERY", f"/rooms?{query}") == (400, code)
    assert calls == []


def test_a_refusal_lists_the_available_fields(bench: Bench) -> None:
    error = bench.send("QUERY", "/rooms?fields=rooms.room_idd,rooms.owner.name.first,next").error
    assert error["message"] == (
        "fields: 'rooms.room_idd' is not a field of the output; available: room_id, note, owner, updated_at."
    )
    assert error["unknown"] == ["rooms.room_idd", "rooms.owner.name.first"]
    assert error["available"] == ["rooms.room_id", "rooms.note", "rooms.owner", "rooms.updated_at"]
    assert error["suggestions"] == {"rooms.room_idd": ["rooms.room_id"]}
    assert "it has no fields" in bench.send("QUERY", "/rooms?fields=next.x").error["message"]


def test_a_hundred_wrong_fields_of_a_wide_output_are_refused_briefly() -> None:
    wide = {"type": "object", "properties": {f"member_{number}" * 5: {} for number in range(3000)}}
    bench = build(make_endpoint("QUERY", "/rooms", echo, output=wide))
    names = ",".join(f"memberr_{number}" for number in range(100))
    error = bench.send("QUERY", f"/rooms?fields={names}").error
    assert (len(error["unknown"]), len(error["available"])) == (100, 50)
    assert len(error["suggestions"]) <= 5


def test_hints_are_for_contracts_that_do_not_declare_the_name() -> None:
    own = {"fields": {"type": "string"}, "compact": {"type": "boolean"}}
    bench = build(make_endpoint("QUERY", "/rooms", echo, properties=own))
    assert bench.send("QUERY", "/rooms?fields=anything&compact=true").json == {"fields": "anything", "compact": True}
    assert refusal(bench, "QUERY", "/rooms?since=2026-01-01") == (400, "since-not-supported")
    policies = Policies(wildcards_accepted=True)
    agent = Agent(agent_id=AGENT, name="explorer", wildcards=True)

    async def repeat(context: Context) -> dict[str, Any]:
        return dict(context.input)

    bench = build(policies=policies, agents=(agent,), wildcard_handler=repeat)
    assert bench.send("QUERY", "/anything?fields=a", agent_id=AGENT).json == {"fields": "a"}


def test_a_body_carries_no_hints(bench: Bench) -> None:
    assert refusal(bench, "QUERY", "/rooms", {"fields": "next"}) == (422, "input-validation-failed")
    own = make_endpoint("QUERY", "/rooms", echo, properties={"beds": {"type": "integer"}})
    assert build(own).send("QUERY", "/rooms?compact=true", {"beds": 2}).json == {"beds": 2}


@rows(
    "target, expected",
    ("QUERY /rooms?fields=next&beds=2", (422, "input-validation-failed")),
    # A method of every server gives its answer whole.
    ("DISCOVER /?fields=server", (400, "token-hints-not-supported")),
    ("DISCOVER /methods?compact=true", (400, "token-hints-not-supported")),
)
def test_other_parameters_and_methods_take_no_hints(bench: Bench, target: str, expected: tuple[int, str]) -> None:
    assert refusal(bench, *target.split(" ")) == expected


@pytest.mark.parametrize("output", [{}, {"type": "object"}, {"type": "object", "additionalProperties": True}])
def test_any_field_may_be_requested_of_an_unknown_output(output: dict[str, Any]) -> None:
    bench = build(make_endpoint("QUERY", "/rooms", giving({"a": {"b": 1, "c": 2}}), output=output))
    assert bench.send("QUERY", "/rooms?fields=a.b,z").json == {"a": {"b": 1}}


def test_the_whole_output_is_checked_before_anything_is_left_out() -> None:
    bench = build(make_endpoint("QUERY", "/rooms", giving({"rooms": 5, "next": "x"}), output=ROOMS))
    assert refusal(bench, "QUERY", "/rooms?fields=next") == (500, "output-validation-failed")
    endless = make_endpoint("QUERY", "/rooms", giving({"a": float("inf"), "b": 1}))
    assert refusal(build(endless), "QUERY", "/rooms?fields=b") == (500, "output-validation-failed")


def test_a_refusal_is_never_shaped() -> None:
    def refuse(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        raise bespeak.Refusal("full", "No room.", nights=[])

    bench = build(make_endpoint("QUERY", "/rooms", refuse, output=ROOMS, errors=("full",)))
    reply = bench.send("QUERY", "/rooms?fields=next&compact=true")
    assert (reply.status, reply.error["code"], reply.error["details"]) == (422, "full", {"nights": []})


@pytest.mark.parametrize("query", ["compact=true", "fields=a.x"])
def test_an_output_nested_too_deeply_is_returned_whole(query: str) -> None:
    deep: Any = []
    for _ in range(700):
        deep = [deep]
    bench = build(make_endpoint("QUERY", "/rooms", giving({"a": deep, "b": ""})))
    reply, whole = bench.send("QUERY", f"/rooms?{query}"), bench.send("QUERY", "/rooms")
    assert (reply.status, reply.response.body) == (200, whole.response.body)


def test_a_record_has_the_input_without_hints_and_the_answer_as_sent() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo, properties={"room_id": {"type": "string"}}))
    request = Request("BOOK", "/room", "fields=room_id&room_id=7", {"agent-id": AGENT}, b"", bench.connection)
    exchanges: list[Exchange] = []
    Dispatcher(bench.server, subscribers=(exchanges.append,))(request)
    auditor = Auditor("rooms", attributes=False, fields={("BOOK", "/room"): ("room_id", "fields")})
    payload = auditor.entry(exchanges[0]).payload
    assert isinstance(payload, Payload)
    assert payload.extra == {"input": {"room_id": "7"}}
    assert payload.result_hash == sha256(b'{"room_id":"7"}').hexdigest()
    assert payload.request_hash == request_hash(request)


# Schemas that count, compare and choose, each held against values that may keep it.
PART = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", ["object", "array", "string", "null"]]),
        "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(1, 3),
        "dependentRequired": st.just({"a": ["b"]}),
        "additionalProperties": st.booleans(),
        "uniqueItems": st.booleans(),
    },
)


def _joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    keys, parts = st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        st.builds(lambda part, names, items: {**part, "properties": names, "items": items}, PART, names, inner),
        st.builds(lambda key, parts: {key: parts}, keys, parts),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda one, two: {"if": one, "then": two}, inner, inner),
        st.builds(lambda part: {"properties": {"a": part, "b": {"$ref": "#"}}}, inner),
    )


SCHEMA = st.recursive(PART, _joined, max_leaves=6)
VALUE = st.recursive(
    st.sampled_from([None, "", "x", 0]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(SCHEMA, VALUE)
def test_a_compact_answer_keeps_the_output_schema(schema: dict[str, Any], value: Any) -> None:
    compiled = compile_schema(schema)
    assert isinstance(compiled, Validator)
    if compiled.is_valid(value):
        endpoint = make_endpoint("QUERY", "/rooms", echo, output=schema)
        assert compiled.is_valid(Shaping(endpoint, compiled).apply(TokenHints(compact=True), value))


@pytest.mark.requirement("AI-3.5-1")
@pytest.mark.parametrize(("query", "answer"), CASES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_hint_works_over_http(method: str, query: str, answer: Any) -> None:
    reply = over_http(method, f"/rooms:query?{query}", QUERY)
    assert (reply.status_code, reply.json()) == (200, answer)


def test_over_http_a_plus_before_an_offset_is_understood() -> None:
    assert over_http("GET", "/rooms:query?since=2026-12-01T12:00:00+02:00", QUERY).json() == {"rooms": [], "next": None}


def test_over_http_unchanged_is_304_and_an_invalid_hint_a_problem() -> None:
    unchanged = over_http("GET", "/rooms/1:fetch?since=2026-06-01", FETCH)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert "content-type" not in unchanged.headers
    wrong = over_http("GET", "/rooms/1:fetch?fields=idd", FETCH)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "unknown-fields")
    assert wrong.headers["content-type"] == "application/problem+json"


def over_http(method: str, target: str, *endpoints: Endpoint) -> httpx.Response:
    async def ask() -> httpx.Response:
        face = make_face(build(*endpoints).dispatcher, HttpSettings())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test") as http:
            return await http.request(method, target)

    return asyncio.run(ask())


APP = '''
from bespeak import App
from bespeak.contract.policy import Policies

app = App("Rooms", server_id="rooms.example", operator="Test", contact="ops@rooms.example")
ROOMS = [{"room_id": "1", "note": None, "updated_at": "2026-01-01T00:00:00Z"},
         {"room_id": "2", "note": "sea", "updated_at": "2026-12-01T10:00:00Z"}]
CALLS = []


class Room:
    room_id: str
    note: str | None
    updated_at: str


from dataclasses import dataclass
Room = dataclass(Room)


@dataclass
class Found:
    rooms: list[Room]


@app.endpoint("QUERY", "/rooms", impact="informational", since="rooms[].updated_at")
def query() -> Found:
    """Find rooms.

    Outcome: The rooms are listed.
    """
    return Found([Room(**room) for room in ROOMS])


@app.endpoint("BOOK", "/room", impact="irreversible")
def book(room_id: str) -> Room:
    """Book a room.

    Outcome: The room is booked.
    """
    CALLS.append(room_id)
    return Room(room_id, str(len(CALLS)), "2026-12-01T10:00:00Z")
'''


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("hints")
    (folder / "rooms_app.py").write_text(APP)
    with serving(folder / "rooms_app.py") as server:
        yield server.uri


@pytest.mark.process
def test_hints_work_over_sockets(served: str) -> None:
    with bespeak.connect_sync(served) as client:
        reply = client.request("QUERY", "/rooms", query={"fields": "rooms.room_id", "since": "2026-06-01"})
        assert reply.output == {"rooms": [{"room_id": "2"}]}
        assert client.discover().endpoint("QUERY", "/rooms").since == "rooms[].updated_at"  # type: ignore[union-attr]


@pytest.mark.process
def test_the_answer_stored_under_a_key_is_the_shaped_one(served: str) -> None:
    with bespeak.connect_sync(served, agent_id="a" * 64) as client:

        def book(**query: str) -> Any:
            return client.request("BOOK", "/room", {"room_id": "7"}, query=query, idempotency_key="once")

        first, again, other = book(fields="note"), book(fields="note"), book(fields="room_id")
    assert (first.output, first.replayed) == (again.output, False)
    assert (set(first.output), again.replayed) == ({"note"}, True)
    assert (other.status, other.error.code) == (422, "idempotency-key-reused")
