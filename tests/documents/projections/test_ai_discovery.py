"""The /.well-known/ai document: always valid, never too large, and correct."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.checks.lint.contexts import CONTEXT
from tests.service import echo, make_endpoint

from bespeak.checks.lint.document import check_text
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.limits import Cost, RateLimits, parse_rate
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.ai.document import MOST_BYTES, MOST_CAPABILITIES
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.discovery import AI_PATH, AiDocuments, project_ai
from bespeak.documents.schemas import load_schema

HOTEL = Path(__file__).parents[3] / "examples" / "hotel"
WEB = HttpSettings(category=("travel",))
OPEN = Policies(scope_required_for_invocation=False)
TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}})
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")


def project(
    *endpoints: Endpoint, web: HttpSettings = WEB, modes: tuple[str, ...] = ("open",), **fields: Any
) -> AiDocuments:
    identity = fields.pop("identity", None) or ServerIdentity(server_id="rooms.example", operator="Acme", contact="")
    service = Service(**{"identity": identity, "endpoints": endpoints, "policies": OPEN, **fields})
    documents = project_ai(service, endpoints, web, modes, updated="2026-11-16T08:00:00Z")
    assert documents is not None
    return documents


def document(*endpoints: Endpoint, **options: Any) -> dict[str, Any]:
    encoded = project(*endpoints, **options).main
    assert_good(encoded)
    found: dict[str, Any] = msgspec.json.decode(encoded)
    return found


def assert_good(encoded: bytes, *, besides: Iterable[str] = ()) -> None:
    """Assert that a document follows the producers' rules."""
    assert len(encoded) <= MOST_BYTES
    validator = compile_schema(load_schema("ai"))
    assert isinstance(validator, Validator)
    assert validator.violations(msgspec.json.decode(encoded)) == []
    found = check_text(encoded.decode(), "ai.json", CONTEXT).findings
    assert [str(finding) for finding in found if finding.rule not in besides] == []


@pytest.mark.requirement("AI-3.3-11", "AI-3.3-13")
def test_document_of_the_example_hotel_is_small_and_lists_its_capabilities() -> None:
    service = read_deployment(HOTEL)[0].service()
    documents = project_ai(service, service.endpoints, WEB, ("open",), updated="2026-11-16T08:00:00Z")
    assert documents is not None
    assert_good(documents.main)
    assert len(documents.main) < 2600
    book = msgspec.json.decode(documents.main)["capabilities"][0]
    assert book == {
        "id": "book_room",
        "description": "Reserve a room for a guest from arrival to departure.",
        "endpoint": "/room:book",
        "method": "POST",
        "params": {
            "guest_id": "string, required, uuid",
            "room_id": "string, required",
            "arrival": "string, required, date",
            "departure": "string, required, date",
        },
        "returns": "reservation_id",
    }


@pytest.mark.requirement("AI-3.2-9", "AI-3.7-1")
def test_a_service_is_described_by_its_name_its_sentence_and_its_settings() -> None:
    identity = ServerIdentity(server_id="x", operator="", contact="", name="Acme Rooms")
    web = replace(
        WEB,
        language=("en", "pt-BR", "zh-Hant", "fil"),
        changelog="https://a.example/log",
        status_page="https://a.example/up",
    )
    found = document(FIND, web=web, identity=identity, description="Rooms by the night.")
    assert found["service"] == {
        "name": "Acme Rooms",
        "description": "Rooms by the night.",
        "category": ["travel"],
        "language": ["en", "pt-BR"],
    }
    assert found["meta"] == {
        "last_updated": "2026-11-16",
        "changelog": "https://a.example/log",
        "status": "https://a.example/up",
    }


def test_missing_description_is_derived_from_the_endpoints() -> None:
    assert document(FIND, BOOK)["service"]["description"] == "Operations on rooms, room"


def test_endpoints_include_the_mount_path() -> None:
    web = replace(WEB, url="https://acme.example/api")
    assert document(FIND, web=web)["capabilities"][0]["endpoint"] == "/api/rooms:find"


@pytest.mark.requirement("AI-3.3-2", "AI-6.1-1")
def test_internal_and_built_in_endpoints_are_left_out() -> None:
    hidden = replace(BOOK, internal=True)
    built_in = replace(make_endpoint("DISCOVER", "/", echo), builtin=True)
    assert [each["id"] for each in document(hidden, built_in, FIND)["capabilities"]] == ["find_rooms"]


@pytest.mark.requirement("AI-3.3-1")
def test_service_without_listed_endpoints_has_no_document() -> None:
    service = Service(identity=ServerIdentity(server_id="x", operator="", contact=""))
    assert project_ai(service, [replace(FIND, internal=True)], WEB, ("open",), updated="2026-11-16") is None


def test_blank_name_counts_as_missing() -> None:
    blank = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name=" \u2028 ")
    assert document(FIND, identity=blank)["service"]["name"] == "rooms.example"


@pytest.mark.requirement("API-14.1-2")
def test_an_endpoint_that_nobody_reviewed_says_so() -> None:
    (capability,) = document(replace(FIND, reviewed=False))["capabilities"]
    assert capability["description"] == "Unreviewed: Do the thing."


def test_deprecated_endpoint_comes_last_and_names_its_successor() -> None:
    old = replace(FIND, deprecated=Deprecation(deprecated_in="1", successor_method="BOOK", successor_path="/room"))
    found = document(old, BOOK)["capabilities"]
    assert [each["id"] for each in found] == ["book_room", "find_rooms"]
    assert found[1]["description"] == "Deprecated, use book_room: Do the thing."


def test_path_parameter_is_required_even_if_the_input_lacks_it() -> None:
    endpoint = make_endpoint("FETCH", "/rooms/{room_id}/beds/{bed}", echo, properties={"bed": {"type": "integer"}})
    assert document(endpoint)["capabilities"][0]["params"] == {
        "bed": "integer, required",
        "room_id": "string, required",
    }


@pytest.mark.requirement("AI-3.4-1", "AI-3.4-3", "AI-6.2-1", "AI-6.2-3")
@pytest.mark.parametrize(
    ("modes", "endpoints", "expected"),
    [
        (("open",), (FIND,), {"type": "none"}),
        (("open",), (FIND, BOOK), {"type": "apikey", "header": "Agent-ID"}),
        (("open",), (replace(FIND, required_scopes=("rooms:read",)),), {"type": "apikey", "header": "Agent-ID"}),
        (("open",), (replace(FIND, cost=Cost({"tokens": Decimal(5)})),), {"type": "apikey", "header": "Agent-ID"}),
        (("token",), (FIND,), {"type": "bearer"}),
        (("signed",), (FIND,), {"type": "apikey", "header": "Agent-Signature"}),
        (("signed", "token", "mtls"), (FIND,), {"type": "bearer"}),
        (("mtls", "signed"), (FIND,), {"type": "apikey", "header": "Agent-Signature"}),
    ],
)
def test_auth_names_the_required_credential(
    modes: tuple[str, ...], endpoints: tuple[Endpoint, ...], expected: dict[str, str]
) -> None:
    assert document(*endpoints, modes=modes)["auth"] == expected


def test_auth_is_not_none_if_scopes_or_known_agents_are_required() -> None:
    assert document(FIND, policies=Policies())["auth"]["type"] == "apikey"
    assert document(FIND, require_known_agents=True)["auth"]["type"] == "apikey"


def test_auth_is_omitted_for_certificates_alone() -> None:
    encoded = project(FIND, modes=("mtls",)).main
    assert "auth" not in msgspec.json.decode(encoded)
    assert_good(encoded, besides={"D185"})


def test_auth_docs_are_included() -> None:
    web = replace(WEB, auth_docs="https://acme.example/auth")
    assert document(FIND, web=web)["auth"] == {"type": "none", "docs": "https://acme.example/auth"}


@pytest.mark.requirement("AI-3.6-1")
@pytest.mark.parametrize(
    ("agent", "address", "expected"),
    [("600/min", None, 600), ("100/s", "1000/h", 16), (None, "5/h", 1), ("2/s burst 50", "300/min", 120)],
)
def test_the_rate_is_the_tightest_that_is_enforced(agent: str | None, address: str | None, expected: int) -> None:
    read = [parse_rate(text) if text else None for text in (agent, address)]
    rates = RateLimits(agent=read[0], address=read[1])  # type: ignore[arg-type]
    web = replace(WEB, agent_tier=True)
    found = document(FIND, rate_limits=rates, web=web)["rate_limits"]
    assert found == {"requests_per_minute": expected, "agent_tier_available": True}


def test_rate_limits_are_omitted_if_there_are_none() -> None:
    assert "rate_limits" not in document(FIND)


@pytest.mark.requirement("AI-3.5-1")
def test_delta_support_needs_since_on_every_reading_endpoint() -> None:
    telling = replace(FIND, since="[].updated_at")
    silent = make_endpoint("FETCH", "/rooms/{room_id}", echo)
    for endpoints in ((FIND,), (BOOK,), (telling, silent)):
        assert document(*endpoints)["token_hints"] == {"compact_mode": True, "field_filtering": True}
    for endpoints in ((telling,), (telling, BOOK)):
        assert document(*endpoints)["token_hints"]["delta_support"] is True


def test_endpoint_with_too_many_parameters_lists_the_required_ones() -> None:
    described = {**TEXT, "description": "Something that takes a while to explain in full."}
    names = [f"parameter_{number}" for number in range(1000)]
    endpoint = make_endpoint(
        "BOOK", "/room", echo, properties=dict.fromkeys(names, described), required=("parameter_999",)
    )
    found = document(endpoint)["capabilities"][0]["params"]
    assert next(iter(found)) == "parameter_999"
    assert 50 < len(found) < 1000


MANY = [
    replace(
        make_endpoint(
            ("FIND", "BOOK", "CANCEL", "LIST")[number % 4],
            f"/thing{number // 40}/x{number}",
            echo,
            properties={"name": TEXT, "kind": {"enum": ["a", "b"]}},
            impact=("informational", "irreversible")[number % 2],
        ),
        required_scopes=("things:do",) if number % 3 else (),
    )
    for number in range(10_000)
]


@pytest.fixture(scope="module")
def many() -> AiDocuments:
    return project(*MANY)


@pytest.mark.requirement("AI-4.5-2")
def test_of_ten_thousand_endpoints_each_is_found_in_exactly_one_part(many: AiDocuments) -> None:
    decoded = {name: msgspec.json.decode(part)["capabilities"] for name, part in many.parts.items()}
    main = msgspec.json.decode(many.main)["capabilities"]
    told = [each["endpoint"] for part in decoded.values() for each in part if not each["endpoint"].startswith(AI_PATH)]
    assert sorted(told) == sorted(f"{each.path}:{each.method.lower()}" for each in MANY)
    # Whoever follows what the document leads to reaches every part.
    reached, ahead = set(), [each["endpoint"] for each in main]
    while ahead:
        name = ahead.pop().removeprefix(f"{AI_PATH}/")
        if name in decoded:
            reached.add(name)
            ahead += [each["endpoint"] for each in decoded[name]]
    assert reached == set(decoded)


@pytest.mark.requirement("AI-4.5-1")
def test_every_part_of_a_large_service_is_valid(many: AiDocuments) -> None:
    for encoded in (many.main, *many.parts.values()):
        assert_good(encoded)
        assert len(msgspec.json.decode(encoded)["capabilities"]) <= MOST_CAPABILITIES


def test_main_document_begins_with_public_capabilities(many: AiDocuments) -> None:
    main = msgspec.json.decode(many.main)["capabilities"]
    assert len(main) == MOST_CAPABILITIES
    assert all(each["method"] == "GET" for each in main)
    free = {f"{each.path}:{each.method.lower()}" for each in MANY if not each.required_scopes}
    assert {each["endpoint"] for each in main if not each["endpoint"].startswith(AI_PATH)} <= free


def test_free_capabilities_come_before_priced_ones() -> None:
    things = [make_endpoint("LIST", f"/thing/x{number}", echo) for number in range(150)]
    dear = [replace(each, cost=Cost({"tokens": Decimal(5)})) for each in things[:75]]
    free = [replace(each, semantic=replace(each.semantic, impact="irreversible")) for each in things[75:]]
    main = msgspec.json.decode(project(*dear, *free).main)["capabilities"]
    assert [each["endpoint"] for each in main[:75]] == [f"{each.path}:list" for each in free]


@pytest.mark.requirement("AI-3.3-4")
def test_adding_an_endpoint_changes_no_id(many: AiDocuments) -> None:
    def ids(documents: AiDocuments) -> dict[str, str]:
        parts = [msgspec.json.decode(part)["capabilities"] for part in documents.parts.values()]
        return {each["endpoint"]: each["id"] for part in parts for each in part if "/.well" not in each["endpoint"]}

    more = project(*MANY, make_endpoint("FIND", "/a/further", echo))
    assert ids(many).items() <= ids(more).items()


@pytest.mark.requirement("AI-3.2-2", "AI-3.2-4", "AI-3.2-5", "AI-3.3-3", "AI-3.3-5", "AI-3.3-12")
def test_long_texts_are_cut_to_their_limits() -> None:
    words = "Rooms with a view of the lake and of the hills behind it. " * 10
    long = make_endpoint("FIND", f"/{'quarters' * 12}", echo, output=an_object(*(f"field_{n}" for n in range(60))))
    found = document(
        replace(long, semantic=replace(long.semantic, intent=words)),
        identity=ServerIdentity(server_id="x", operator="", contact="", name=words),
        description=words,
    )
    [capability] = found["capabilities"]
    texts = {**found["service"], **capability}
    assert 90 < len(texts["name"]) <= 100
    assert 190 < len(capability["description"]) <= 200
    assert 180 < len(found["service"]["description"]) < 200
    assert 250 < len(capability["returns"]) <= 300
    assert len(capability["id"]) == 64


def an_object(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, TEXT)}


SCALARS = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        {"enum": ["a", "b, c", "d -- e", None]},
        {"type": "string", "format": "date", "description": 'When -- or "not" — at all,\nlong ' * 30},
        {"type": ["number", "null"], "exclusiveMinimum": 0.5},
        {"$ref": "#/$defs/self"},
        {"anyOf": [TEXT, {"type": "array", "items": {"type": "object"}}]},
        {},
        True,
    ]
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(
            lambda fields: {"type": "object", "properties": fields},
            st.dictionaries(st.text(max_size=6), inner, max_size=4),
        )
    ),
    max_leaves=12,
)
WORDS = st.text(min_size=1, max_size=400).filter(str.strip)


@pytest.mark.requirement("AI-3.1-1", "AI-3.1-2", "AI-3.3-7", "AI-3.3-10", "AI-3.3-11", "AI-B-1")
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.text(max_size=8), SCHEMAS, max_size=6), SCHEMAS, WORDS, WORDS)
def test_any_contract_gives_a_valid_document(fields: dict[str, Any], output: Any, intent: str, name: str) -> None:
    endpoint = make_endpoint(
        "BOOK", "/room/{id}", echo, properties=fields, required=tuple(fields), impact="irreversible"
    )
    schema = {"type": "object", "properties": {"made": output}, "$defs": {"self": {"$ref": "#/$defs/self"}}}
    made = replace(
        endpoint,
        semantic=replace(endpoint.semantic, intent=intent),
        output_schema=schema,
        deprecated=Deprecation(deprecated_in="1", successor_method=name),
    )
    document(made, identity=ServerIdentity(server_id="x", operator="", contact="", name=name), description=intent)
