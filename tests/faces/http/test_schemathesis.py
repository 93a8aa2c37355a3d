"""The served OpenAPI document held against the face by schemathesis: what it promises is what happens."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.case import Case
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.service import AGENT, echo, make_endpoint
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak.app.server.mounted import MountedService
from bespeak.app.server.target import Target
from bespeak.contract.agent import Agent
from bespeak.contract.cost import read_cost
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.policy import Policies
from bespeak.contract.refusal import Refusal
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.settings import MEMORY

SERVER = "rooms.example"
NUMBER = {"type": "integer", "minimum": 0}
GUEST = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "with": {"type": "array", "items": {"$ref": "#/$defs/Guest"}, "maxItems": 2},
    },
}
ROOM = {
    "type": "object",
    "required": ["room_id", "changed"],
    "properties": {"room_id": {"type": "string"}, "beds": NUMBER, "changed": {"type": "string", "format": "date-time"}},
}


def find(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    rooms = [{"room_id": "1", "beds": input["beds"], "changed": "2026-01-01T00:00:00Z"}]
    return {"rooms": rooms, "note": "", "total": 1}


def cancel(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    if input["number"] % 2:
        raise Refusal("too_late", "The guest has arrived.", number=input["number"])
    return {"cancelled": True}


def nothing(input: dict[str, Any]) -> None:  # noqa: A002
    return None


ENDPOINTS = (
    replace(
        make_endpoint(
            "FIND",
            "/rooms",
            find,
            properties={
                "beds": {"type": "integer", "minimum": 1, "maximum": 9},
                "kind": {"enum": ["suite", "single"]},
                "sea": {"type": "boolean"},
                "price": {"type": ["number", "null"]},
                "words": {"type": "string", "maxLength": 20},
                "floor": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            required=("beds",),
            output={
                "type": "object",
                "required": ["rooms"],
                "properties": {
                    "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
                    "note": {"type": "string"},
                    "total": NUMBER,
                },
                "$defs": {"Room": ROOM},
            },
        ),
        since="rooms[].changed",
        cost=read_cost({"tokens": 100})[0],
    ),
    replace(
        make_endpoint("BOOK", "/room/{room_id}", echo, impact="irreversible", scopes=("booking:room",)),
        input_schema={
            "type": "object",
            "required": ["room_id", "guest"],
            "additionalProperties": False,
            "properties": {
                "room_id": {"type": "string", "maxLength": 12},
                "guest": {"$ref": "#/$defs/Guest"},
                "arrival": {"type": "string", "format": "date"},
            },
            "$defs": {"Guest": GUEST},
        },
        output_schema={
            "type": "object",
            "required": ["guest"],
            "properties": {"guest": {"$ref": "#/$defs/Guest"}},
            "$defs": {"Guest": GUEST},
        },
    ),
    replace(
        make_endpoint(
            "FETCH",
            "/reservation/{number}",
            echo,
            properties={"number": NUMBER, "lang": {"type": "string", "enum": ["en", "it"]}},
            required=("number",),
            output={"type": "object", "required": ["number"], "properties": {"number": NUMBER}},
        ),
        deprecated=Deprecation(deprecated_in="1", successor_method="FIND", successor_path="/rooms"),
    ),
    make_endpoint(
        "CANCEL",
        "/reservation/{number}",
        cancel,
        properties={"number": NUMBER, "reason": {"type": "string"}},
        required=("number",),
        errors=("too_late", "unknown_reservation"),
        impact="irreversible",
        output={"type": "object", "required": ["cancelled"], "properties": {"cancelled": {"const": True}}},
    ),
    make_endpoint(
        "NOTIFY",
        "/desk",
        nothing,
        properties={
            "when": {"type": "string", "format": "date-time"},
            "mail": {"type": "string", "format": "email"},
            "id": {"type": "string", "format": "uuid"},
        },
        impact="reversible",
        output={"type": "object", "additionalProperties": False},
    ),
    replace(make_endpoint("SUSPEND", "/lift", nothing, impact="reversible"), confirm=True),
)


def load(auth: AuthSettings) -> Any:
    """The document of the service as it is served, by schemathesis."""
    service = Service(
        identity=ServerIdentity(server_id=SERVER, operator="Test", contact="ops@rooms.example"),
        endpoints=ENDPOINTS,
        policies=Policies(scope_required_for_invocation=False),
        agents=(Agent(agent_id=AGENT, name="Guest", scopes=("booking:room",)),),
    )
    target = Target(service, Path.cwd(), ServerDocument(auth=auth))
    served = MountedService(target, MEMORY, HttpSettings())
    # To cost too much is a reason like others to refuse what is written badly: it is found first.
    rejected = {"expected-statuses": [400, 401, 402, 403, 404, 405, 409, 422, 429]}
    config = SchemathesisConfig.from_dict({"seed": 5, "checks": {"negative_data_rejection": rejected}})
    return schemathesis.openapi.from_asgi("/openapi.json", served, config=config)


def refused_for_its_form(_: Any, response: Any, case: Case) -> None:
    """A request that keeps the document may fail for what it means, never for how it is written."""
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code in (400, 413, 415, 422):
        told = response.json()
        # AGTP-API 5.1 lets no segment of a path be a method's name, and no schema can tell a word from a name.
        assert told["code"] in ("too_late", "endpoint-violation"), f"{told['code']}: {told['detail']}"


BOUNDED = settings(
    max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
OPEN = load(AuthSettings())


@OPEN.parametrize()
@BOUNDED
def test_what_the_document_says_is_what_happens(case: Case) -> None:
    case.call_and_validate(excluded_checks=[positive_data_acceptance], additional_checks=[refused_for_its_form])


@OPEN.parametrize()
@BOUNDED
def test_it_happens_to_an_agent_with_authority_too(case: Case) -> None:
    case.headers.update({"Agent-ID": AGENT})
    case.headers.pop("Authority-Scope", None)
    case.call_and_validate(
        excluded_checks=[positive_data_acceptance, negative_data_rejection], additional_checks=[refused_for_its_form]
    )


FOLDER = TemporaryDirectory()
KEY = new_key()
PROVEN = load(
    AuthSettings(modes=("token",), token=TokenSettings(keys=write_keys(Path(FOLDER.name) / "keys", public(KEY))))
)
NOW = int(time.time())
TOKEN = sign(KEY, claims(aud=SERVER, agent_id=AGENT, iat=NOW, exp=NOW + 3600))


@PROVEN.parametrize()
@BOUNDED
def test_who_proves_nothing_is_turned_away_where_authority_is_needed(case: Case) -> None:
    case.call_and_validate(excluded_checks=[positive_data_acceptance], additional_checks=[refused_for_its_form])


@PROVEN.parametrize()
@BOUNDED
def test_who_proves_its_identity_is_let_in(case: Case) -> None:
    case.call_and_validate(
        headers={"Authorization": f"Bearer {TOKEN}"},
        excluded_checks=[positive_data_acceptance],
        additional_checks=[refused_for_its_form],
    )
