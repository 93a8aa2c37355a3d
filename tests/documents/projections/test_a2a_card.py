"""The agent card: valid by the SDK's own check, and nothing in it that the contract does not say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.compat.v0_3 import types as legacy
from a2a.types import AgentCard
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from tests.cases import rows
from tests.process import ROOT
from tests.service import echo, make_endpoint

from bespeak.app.cli.export import open_exported
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.a2a_card import SCHEMAS, project_card, to_legacy
from bespeak.state.identity.settings import AuthSettings, TokenSettings

WEB = HttpSettings(url="https://rooms.example/api")
FIND = make_endpoint("FIND", "/rooms", echo, capability="discovery")
BOOK = make_endpoint(
    "BOOK",
    "/rooms/{room_id}",
    echo,
    impact="irreversible",
    scopes=("rooms:write",),
    properties={"room_id": {"type": "string", "examples": ["12"]}, "nights": {"type": "integer"}},
    required=("room_id", "nights"),
)
SECRET = replace(make_endpoint("FIND", "/ledger", echo, scopes=("ledger:read",)), internal=True)
TOKENS = AuthSettings(modes=("token", "mtls", "signed"), token=TokenSettings(issuer="https://login.example"))


def card(
    *endpoints: Endpoint,
    auth: AuthSettings | None = None,
    operator: str = "Acme",
    contact: str = "ops@rooms.example",
    **options: Any,
) -> dict[str, Any]:
    identity = ServerIdentity(server_id="rooms.example", operator=operator, contact=contact)
    policies = options.pop("policies", Policies(scope_required_for_invocation=False))
    service, auth = Service(identity=identity, policies=policies), auth or AuthSettings()
    options |= {"version": "1.2.0", "issuer": auth.token.issuer}
    found = project_card(service, (*endpoints, SECRET), WEB, auth.modes, **options)
    assert found is not None
    return found


def check(found: dict[str, Any]) -> AgentCard:
    """Hold a card against the SDK: every member is known, and every required one is there."""
    parsed = ParseDict(found, AgentCard())
    validate_proto_required_fields(parsed)
    legacy.AgentCard.model_validate(to_legacy(found))
    return parsed


SERVICES = [
    *(ROOT / "examples" / name for name in ("hotel", "restaurant", "finance")),
    ROOT / "docs_src" / "importing" / "shelter.yaml",
    *sorted((ROOT / "tests" / "documents" / "valid").glob("*.agis")),
]


@pytest.mark.parametrize("place", SERVICES, ids=lambda path: path.name)
def test_every_card_is_valid(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("UPSTREAM_ANIMAL_SHELTER_API_KEY", "x")
    found = open_exported(str(place), {}, url="https://rooms.example")
    capsys.readouterr()
    for most_skills in (100, 1):
        given = (found.service, found.service.endpoints, found.http, TOKENS.modes)
        made = project_card(*given, version="1", most_skills=most_skills)
        assert made is not None
        check(made)


def test_each_endpoint_is_a_skill_under_the_id_of_its_operation() -> None:
    found = card(FIND, BOOK)
    book = check(found).skills[1]
    assert (book.id, book.name) == ("book_rooms_by_room_id", "Book rooms by room id")
    assert set(book.tags) >= {"rooms", "destructive", "needs-confirmation"}
    assert "read-only" in check(found).skills[0].tags
    called = {"skill": "book_rooms_by_room_id", "input": {"room_id": "12", "nights": 1}}
    assert json.loads(book.examples[0]) == called


def test_card_needs_an_endpoint_and_an_address_and_hides_internal_endpoints() -> None:
    assert "ledger" not in json.dumps([card(FIND, auth=TOKENS), card(FIND, most_skills=0, auth=TOKENS)])
    assert card(FIND, BOOK)["description"] == "Operations on rooms"
    service = Service(identity=ServerIdentity(server_id="x.example", operator="", contact=""))
    assert project_card(service, (SECRET,), WEB, (), version="1") is None
    assert project_card(service, (FIND,), HttpSettings(), (), version="1") is None


def test_hints_scopes_and_schemas_are_on_the_card() -> None:
    hinted = replace(FIND, semantic=replace(FIND.semantic, parameter_hints={"beds": ["for two", "double"], "x": [7]}))
    assert card(hinted)["skills"][0]["examples"][1].endswith(": for two")
    found = card(FIND, auth=TOKENS, policies=Policies(scope_required_for_invocation=True))
    assert found["securityRequirements"][0] == {"schemes": {"Bearer": {"list": []}}}
    assert found["skills"][0]["securityRequirements"] == found["securityRequirements"]
    (extension,) = card(FIND)["capabilities"]["extensions"]
    assert (extension["uri"], extension["params"]["openapi"]) == (SCHEMAS, "https://rooms.example/api/openapi.json")
    (closed,) = card(FIND, extended=True)["capabilities"]["extensions"]
    assert "openapi" not in closed["params"]


def test_scopes_are_the_requirements_of_a_skill() -> None:
    find, book = card(FIND, BOOK, auth=TOKENS)["skills"]
    assert "securityRequirements" not in find
    assert book["securityRequirements"] == [
        {"schemes": {"Bearer": {"list": ["rooms:write"]}}},
        {"schemes": {"ClientCertificate": {"list": ["rooms:write"]}}},
    ]


def test_card_names_usable_credentials_and_a_deprecated_endpoint_last_with_its_successor() -> None:
    found = card(BOOK, auth=TOKENS)["securitySchemes"]
    assert sorted(found) == ["Bearer", "ClientCertificate"]
    assert "https://login.example" in found["Bearer"]["httpAuthSecurityScheme"]["description"]
    assert sorted(card(BOOK)["securitySchemes"]) == ["AgentId"]
    assert "securitySchemes" not in card(BOOK, auth=AuthSettings(modes=("signed",)))
    deprecated = Deprecation(deprecated_in="2", successor_method="FIND")
    old = replace(make_endpoint("QUERY", "/rooms", echo), deprecated=deprecated)
    last = card(old, FIND)["skills"][-1]
    assert "Deprecated since 2. Use find_rooms instead." in last["description"]
    assert "deprecated" in last["tags"]


def test_many_endpoints_are_one_skill_for_each_namespace() -> None:
    other = make_endpoint("LIST", "/halls", echo, scopes=("halls:read",))
    rooms, halls = card(FIND, BOOK, other, most_skills=2, auth=TOKENS)["skills"]
    assert (rooms["id"], halls["id"]) == ("rooms", "halls")
    assert "find_rooms, book_rooms_by_room_id" in rooms["description"]
    assert "securityRequirements" not in rooms
    assert halls["securityRequirements"][0] == {"schemes": {"Bearer": {"list": ["halls:read"]}}}
    assert {"read-only", "destructive"} <= set(rooms["tags"])


@rows(
    "operator, contact, provider",
    ("Acme", "ops@rooms.example", {"organization": "Acme", "url": "https://rooms.example/api"}),
    ("Acme", "https://acme.example", {"organization": "Acme", "url": "https://acme.example"}),
    ("unspecified", "", None),
)
def test_the_provider_is_the_operator_if_there_is_one(operator: str, contact: str, provider: Any) -> None:
    assert card(FIND, operator=operator, contact=contact).get("provider") == provider


def test_the_legacy_form_says_the_same() -> None:
    found = card(FIND, BOOK, auth=TOKENS, policies=Policies(scope_required_for_invocation=True))
    read = parse_agent_card(to_legacy(found))
    again = check(found)
    assert list(read.skills) == list(again.skills)
    assert read.security_schemes == again.security_schemes
    assert list(read.security_requirements) == list(again.security_requirements)
    assert [each.url for each in read.supported_interfaces] == ["https://rooms.example/api/a2a"]
    assert "AgentId" in to_legacy(card(BOOK))["securitySchemes"]
