"""The /.well-known/ai document: always valid, never too large, and correct."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cases import rows
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
from bespeak.documents.projections.discovery import (
    AI_PATH,
    MCP_VERSIONS,
    MOST_ENDPOINTS,
    AiDocuments,
    Artifact,
    describe_service,
    project_ai,
    project_bootstrap,
    project_catalog,
    project_llms,
    project_mcp_catalog,
    project_server_card,
    publisher_of,
    short_name,
)
from bespeak.documents.schemas import load_schema
from bespeak.text.source.pointer import value_at

HOTEL = Path(__file__).parents[3] / "examples" / "hotel"
WEB = HttpSettings(category=("travel",))
OPEN = Policies(scope_required_for_invocation=False)
TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}})
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")


def project(*endpoints: Endpoint, web: HttpSettings = WEB, modes: Any = ("open",), **fields: Any) -> AiDocuments:
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
    languages = ("en", "pt-BR", "zh-Hant", "fil")
    web = replace(WEB, language=languages, changelog="https://a.example/log", status_page="https://a.example/up")
    found = document(FIND, web=web, identity=identity, description="Rooms by the night.")
    texts = {"name": "Acme Rooms", "description": "Rooms by the night."}
    assert found["service"] == {**texts, "category": ["travel"], "language": ["en", "pt-BR"]}
    pages = {"changelog": "https://a.example/log", "status": "https://a.example/up"}
    assert found["meta"] == {"last_updated": "2026-11-16", **pages}


@pytest.mark.requirement("AI-3.3-2", "AI-6.1-1", "AI-3.3-1")
def test_internal_and_built_in_endpoints_are_left_out_and_without_others_there_is_no_document() -> None:
    hidden = replace(BOOK, internal=True)
    built_in = replace(make_endpoint("DISCOVER", "/", echo), builtin=True)
    assert [each["id"] for each in document(hidden, built_in, FIND)["capabilities"]] == ["find_rooms"]
    service = Service(identity=ServerIdentity(server_id="x", operator="", contact=""))
    assert project_ai(service, [replace(FIND, internal=True)], WEB, ("open",), updated="2026-11-16") is None


BLANK = ServerIdentity(server_id="rooms.example", operator="Acme", contact="", name=" \u2028 ")
MOUNTED, EXPLAINED = replace(WEB, url="https://acme.example/api"), replace(WEB, auth_docs="https://acme.example/auth")


@pytest.mark.requirement("API-14.1-2")
@rows(
    "endpoints, options, place, expected",
    ((FIND, BOOK), {}, "/service/description", "Operations on rooms, room"),
    ((FIND,), {"identity": BLANK}, "/service/name", "rooms.example"),
    ((FIND,), {"web": MOUNTED}, "/capabilities/0/endpoint", "/api/rooms:find"),
    ((replace(FIND, reviewed=False),), {}, "/capabilities/0/description", "Unreviewed: Do the thing."),
    ((FIND,), {"web": EXPLAINED}, "/auth", {"type": "none", "docs": "https://acme.example/auth"}),
    ((FIND,), {}, "/rate_limits", None),
)
def test_member_of_the_document(endpoints: tuple[Endpoint, ...], options: Any, place: str, expected: Any) -> None:
    assert value_at(document(*endpoints, **options), place) == expected


def test_deprecated_endpoint_comes_last_and_path_parameters_are_required() -> None:
    old = replace(FIND, deprecated=Deprecation(deprecated_in="1", successor_method="BOOK", successor_path="/room"))
    found = document(old, BOOK)["capabilities"]
    assert [each["id"] for each in found] == ["book_room", "find_rooms"]
    assert found[1]["description"] == "Deprecated, use book_room: Do the thing."
    endpoint = make_endpoint("FETCH", "/rooms/{room_id}/beds/{bed}", echo, properties={"bed": {"type": "integer"}})
    params = {"bed": "integer, required", "room_id": "string, required"}
    assert document(endpoint)["capabilities"][0]["params"] == params


@pytest.mark.requirement("AI-3.4-1", "AI-3.4-3", "AI-6.2-1", "AI-6.2-3")
@rows(
    "modes, endpoints, expected",
    (("open",), (FIND,), {"type": "none"}),
    (("open",), (FIND, BOOK), {"type": "apikey", "header": "Agent-ID"}),
    (("open",), (replace(FIND, required_scopes=("rooms:read",)),), {"type": "apikey", "header": "Agent-ID"}),
    (("open",), (replace(FIND, cost=Cost({"tokens": Decimal(5)})),), {"type": "apikey", "header": "Agent-ID"}),
    (("token",), (FIND,), {"type": "bearer"}),
    (("signed",), (FIND,), {"type": "apikey", "header": "Agent-Signature"}),
    (("signed", "token", "mtls"), (FIND,), {"type": "bearer"}),
    (("mtls", "signed"), (FIND,), {"type": "apikey", "header": "Agent-Signature"}),
)
def test_auth_names_the_required_credential(
    modes: tuple[str, ...], endpoints: tuple[Endpoint, ...], expected: dict[str, str]
) -> None:
    assert document(*endpoints, modes=modes)["auth"] == expected


def test_auth_is_published_if_it_is_needed_and_omitted_for_certificates_alone() -> None:
    assert document(FIND, policies=Policies(scope_required_for_invocation=True))["auth"]["type"] == "apikey"
    assert document(FIND, require_known_agents=True)["auth"]["type"] == "apikey"
    encoded = project(FIND, modes=("mtls",)).main
    assert "auth" not in msgspec.json.decode(encoded)
    assert_good(encoded, besides={"D185"})


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
    endpoint = make_endpoint("BOOK", "/room", echo, properties=dict.fromkeys(names, described), required=(names[-1],))
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
def test_every_part_of_a_large_service_is_valid_and_public_capabilities_come_first(many: AiDocuments) -> None:
    for encoded in (many.main, *many.parts.values()):
        assert_good(encoded)
        assert len(msgspec.json.decode(encoded)["capabilities"]) <= MOST_CAPABILITIES
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
    endpoint = make_endpoint("BOOK", "/room/{id}", echo, properties=fields, required=(*fields,), impact="irreversible")
    schema = {"type": "object", "properties": {"made": output}, "$defs": {"self": {"$ref": "#/$defs/self"}}}
    made = replace(
        endpoint,
        semantic=replace(endpoint.semantic, intent=intent),
        output_schema=schema,
        deprecated=Deprecation(deprecated_in="1", successor_method=name),
    )
    document(made, identity=ServerIdentity(server_id="x", operator="", contact="", name=name), description=intent)


def card(*modes: str, name: str = "Acme Rooms", issuer: str | None = None, **fields: Any) -> dict[str, Any]:
    identity = ServerIdentity(server_id="rooms.acme.example", operator="Acme", contact="", name=name)
    settings = HttpSettings(url="https://api.acme.example/v1")
    service = Service(identity=identity, **fields)
    return project_server_card(service, [FIND], settings, modes or ("open",), version="v-1", issuer=issuer)


def test_a_card_says_where_and_how_to_connect_and_lists_no_tools() -> None:
    found = card("mtls", description="Rooms of all hotels.")
    assert found == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.acme.rooms/acme-rooms",
        "title": "Acme Rooms",
        "description": "Rooms of all hotels.",
        "version": "v-1",
        "remotes": [
            {
                "type": "streamable-http",
                "url": "https://api.acme.example/v1/mcp",
                "supportedProtocolVersions": list(MCP_VERSIONS),
            }
        ],
    }


def test_the_revisions_are_those_of_the_sdk() -> None:
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    assert (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS) == MCP_VERSIONS


@pytest.mark.parametrize("name", ["", "Ärzte & Söhne " * 20, "日本", "x"])
def test_names_and_texts_keep_their_limits(name: str) -> None:
    found = card(name=name, description="text " * 90)
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", found["name"])
    assert 3 <= len(found["name"]) <= 200
    assert 1 <= len(found["title"]) <= 100
    assert 1 <= len(found["description"]) <= 100


@rows(
    "modes, issuer, expected",
    (("open",), None, {"Agent-ID": False, "Authority-Scope": False}),
    (("token",), "keys.acme", {"Authorization": True}),
    (("token", "mtls"), None, {"Authorization": False}),
    (("token",), "https://login.acme.example", {}),
    (("mtls",), None, {}),
)
def test_headers_that_a_user_supplies_are_named(modes: tuple[str, ...], issuer: str | None, expected: Any) -> None:
    [remote] = card(*modes, issuer=issuer)["remotes"]
    assert {one["name"]: one["isRequired"] for one in remote.get("headers", [])} == expected
    assert all(one.get("isSecret", False) == (one["name"] == "Authorization") for one in remote.get("headers", []))


BOOK_BY_ID = make_endpoint("BOOK", "/room/{room_id}", echo, impact="irreversible", scopes=("booking:room",))
DOCUMENTS = {"/openapi.json": "OpenAPI"}


def page(*endpoints: Endpoint, name: str = "Acme Rooms", url: str | None = None, **fields: Any) -> str:
    service = Service(identity=ServerIdentity(server_id="x", operator="", contact="", name=name), **fields)
    return project_llms(service, endpoints, HttpSettings(url=url), DOCUMENTS)


def test_the_page_has_a_title_a_summary_and_links() -> None:
    old = replace(FIND, path="/old", deprecated=Deprecation(deprecated_in="1"))
    text = page(old, FIND, BOOK_BY_ID, description="Rooms by the night.")
    assert text.startswith("# Acme Rooms\n\n> Rooms by the night.\n\n")
    assert text.endswith(
        "## Endpoints\n\n"
        "- [FIND /rooms](/rooms:find): Do the thing. (GET)\n"
        "- [BOOK /room/{room_id}](/room/{room_id}:book): Do the thing. (needs booking:room)\n"
        "- [FIND /old](/old:find): Do the thing. (GET; deprecated)\n\n"
        "## Documents\n\n"
        "- [/openapi.json](/openapi.json): OpenAPI\n"
    )


def test_page_has_absolute_links_and_a_limited_number_of_public_endpoints() -> None:
    text = page(FIND, url="https://rooms.example/api")
    assert "(https://rooms.example/api/rooms:find)" in text
    assert "(https://rooms.example/api/openapi.json)" in text
    assert "/rooms" not in page(replace(FIND, internal=True))
    text = page(*(make_endpoint("FIND", f"/thing-{number}", echo) for number in range(10_000)))
    assert text.count("\n- [FIND") == MOST_ENDPOINTS
    assert "- 9800 more: " in text
    assert len(text) < 64_000


@given(st.text(min_size=1), st.text())
def test_texts_of_a_contract_do_not_become_markup(name: str, intent: str) -> None:
    text = page(replace(FIND, semantic=replace(FIND.semantic, intent=intent)), name=name, description=intent)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert len(re.findall(r"(?<!\\)\]\(", text)) == 2
    assert not re.search(r"(?<!\\)<", text)


def service(server_id: str = "rooms.acme.example", description: str = "", agtp: str = "", **identity: str) -> Service:
    named = ServerIdentity(**{"server_id": server_id, "operator": "", "contact": "", **identity})
    return Service(identity=named, description=description, agtp=agtp or None)


ACME = service(operator="Acme", name="Acme Rooms")
URL = "https://rooms.acme.example"
CARD = Artifact("mcp", "application/mcp-server-card+json", f"{URL}/mcp/server-card", "how MCP clients connect")
AGTP = Artifact("agtp", "application/vnd.agtp.manifest+json", "agtp://rooms.acme.example", "the manifest")


def test_each_document_is_an_entry_with_its_own_type_and_identifier() -> None:
    found = project_catalog(ACME, URL, [CARD, AGTP], updated="2026-11-16T00:00:00Z")
    assert found["specVersion"] == "1.0"
    assert found["host"] == {"displayName": "Acme", "identifier": "rooms.acme.example"}
    assert found["entries"][0] == {
        "identifier": "urn:air:rooms.acme.example:mcp:acme-rooms",
        "displayName": "Acme Rooms",
        "type": "application/mcp-server-card+json",
        "url": "https://rooms.acme.example/mcp/server-card",
        "description": "how MCP clients connect",
        "tags": ["mcp"],
        "updatedAt": "2026-11-16T00:00:00Z",
    }
    identifiers = [entry["identifier"] for entry in found["entries"]]
    assert len(set(identifiers)) == 2
    assert all(re.fullmatch(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+", one) for one in identifiers)


def test_service_without_operator_is_its_own_host_and_its_description_is_cut_or_made_of_nouns() -> None:
    assert (
        project_catalog(service(operator="unspecified", name="Acme Rooms"), URL, [], updated="")["host"]["displayName"]
        == "Acme Rooms"
    )
    rooms = [make_endpoint("FIND", "/rooms", echo), make_endpoint("BOOK", "/rooms/{id}", echo)]
    assert describe_service(service(), rooms, 100) == "Operations on rooms"
    assert len(describe_service(service(description="word " * 100), rooms, 100)) <= 100


def test_the_older_catalog_has_the_mcp_server_alone() -> None:
    assert project_mcp_catalog(ACME, URL, CARD) == {
        "specVersion": "draft",
        "entries": [
            {
                "identifier": "urn:air:rooms.acme.example:mcp:acme-rooms",
                "displayName": "Acme Rooms",
                "type": "application/mcp-server-card+json",
                "url": "https://rooms.acme.example/mcp/server-card",
            }
        ],
    }


@rows(
    "made, expected",
    (service(), "rooms.acme.example"),
    (service("agtp://Rooms.Acme.example:4480"), "rooms.acme.example"),
    (service(domain="acme.example"), "acme.example"),
    (service("rooms"), "api.acme.example"),
    (service("10.0.0.7"), "api.acme.example"),
    (service("a b.c/d"), "api.acme.example"),
)
def test_the_publisher_is_a_domain(made: Service, expected: str) -> None:
    assert publisher_of(made, "https://api.acme.example:8443/rooms") == expected


@pytest.mark.parametrize(("url", "expected"), [("http://127.0.0.1:8080", "127-0-0-1"), ("http://[::1]:80", "1")])
def test_without_a_domain_the_host_stands_for_it(url: str, expected: str) -> None:
    assert publisher_of(service("rooms"), url) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Acme Rooms", "acme-rooms"), ("", "rooms-acme-example"), ("日本", "service"), ("x" * 90, "x" * 60)],
)
def test_a_short_name_has_only_letters_digits_and_hyphens(name: str, expected: str) -> None:
    assert short_name(service(name=name)) == expected


@pytest.mark.requirement("CORE-3-16")
def test_document_has_address_and_time_and_no_verification() -> None:
    assert project_bootstrap(service("rooms.example"), port=4480, updated="2026-11-16T08:00:00Z") == {
        "agtp_version": "1.0",
        "endpoint": "rooms.example:4480",
        "namespace_root": "agtp://rooms.example:4480/agents",
        "issuer": "agtp://rooms.example",
        "discovery": {
            "namespace_document": "agtp://rooms.example:4480/agents",
            "well_known_updated_at": "2026-11-16T08:00:00Z",
        },
    }


@rows(
    "server_id, agtp, endpoint",
    ("rooms.example", None, "rooms.example:5000"),
    ("::1", None, "[::1]:5000"),
    ("x", "agtp://public.example", "public.example:4480"),
    ("x", "agtp://public.example:4490/", "public.example:4490"),
    ("x", "agtp://[2001:db8::1]:4490", "[2001:db8::1]:4490"),
    ("x", f"agtp://{'a' * 64}@public.example", "public.example:4480"),
)
def test_address_of_the_contract_wins_over_the_listening_port(server_id: str, agtp: str | None, endpoint: str) -> None:
    assert project_bootstrap(service(server_id, agtp=agtp or None), port=5000, updated="")["endpoint"] == endpoint
