"""Conformance of the HTTP face with its OpenAPI document, by schemathesis."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.cases import check_each
from tests.service import AGENT, echo, make_endpoint
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak.app.server.mounted import MountedService
from bespeak.app.server.target import Target
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.handler import Refusal
from bespeak.contract.limits import read_cost
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.settings import MEMORY

if TYPE_CHECKING:
    from schemathesis.generation.case import Case
    from schemathesis.schemas import APIOperation

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
KEY = new_key()


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
    """Load the document that the service serves."""
    # Importing schemathesis takes most of a second, which collecting the tests must not.
    import schemathesis
    from schemathesis.config import SchemathesisConfig

    service = Service(
        identity=ServerIdentity(server_id=SERVER, operator="Test", contact="ops@rooms.example"),
        endpoints=ENDPOINTS,
        agents=(Agent(agent_id=AGENT, name="Guest", scopes=("booking:room",)),),
        require_known_agents=False,
    )
    target = Target(service, Path.cwd(), ServerDocument(auth=auth))
    served = MountedService(target, MEMORY, HttpSettings())
    # To cost too much is a reason like others to refuse what is written badly: it is found first.
    rejected = {"expected-statuses": [400, 401, 402, 403, 404, 405, 409, 422, 429]}
    config = SchemathesisConfig.from_dict({"seed": 5, "checks": {"negative_data_rejection": rejected}})
    return schemathesis.openapi.from_asgi("/openapi.json", served, config=config)


def refused_for_its_form(_: Any, response: Any, case: Case) -> None:
    """Fail if a request that conforms to the document is refused for its form."""
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code in (400, 413, 415, 422):
        told = response.json()
        # AGTP-API 5.1 lets no segment of a path be a method's name, and no schema can tell a word from a name.
        assert told["code"] in ("too_late", "endpoint-violation"), f"{told['code']}: {told['detail']}"


def check_operations(
    schema: Any,
    headers: dict[str, str],
    *,
    boundaries: str | None = None,
    agent: str | None = None,
    rejection: bool = True,
) -> None:
    """Send examples and generated cases of every operation and compare the answers with the document.

    Operations whose label contains `boundaries` get their boundary values too. `agent` replaces the caller of a case;
    without `rejection`, values that a schema forbids may be accepted.
    """
    from schemathesis.core.failures import FailureGroup
    from schemathesis.generation import derive_operation_seed
    from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
    from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

    is_quick = settings.get_current_profile_name() == "quick"
    most = 2 if is_quick else 4 if boundaries is None else 12
    excluded = [positive_data_acceptance] if rejection else [positive_data_acceptance, negative_data_rejection]
    bounded = settings(
        max_examples=most, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )

    def validate(case: Case) -> None:
        # Hypothesis draws names of headers from the source, too; with this one the request is another call.
        case.headers.pop("X-AGIS-Method", None)
        if agent is not None:
            case.headers.update({"Agent-ID": agent})
            case.headers.pop("Authority-Scope", None)
        case.call_and_validate(headers=headers, excluded_checks=excluded, additional_checks=[refused_for_its_form])

    def check(operation: APIOperation) -> None:
        modes = list(HypothesisTestMode)
        if is_quick or boundaries is None or boundaries not in operation.label:
            modes.remove(HypothesisTestMode.COVERAGE)  # hundreds of boundary values
        config = HypothesisTestConfig(
            project=schema.config,
            modes=modes,
            settings=bounded,
            seed=derive_operation_seed(schema.config.seed, operation.label),
        )
        try:
            create_test(operation=operation, test_func=validate, config=config)()
        except FailureGroup as group:  # no Exception, so that it would end the loop
            raise AssertionError(str(group)) from group

    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 8
    check_each(operations, check, name=lambda operation: operation.label)


@pytest.fixture(scope="module")
def open_schema() -> Any:
    return load(AuthSettings())


def test_responses_match_the_openapi_document(open_schema: Any) -> None:
    check_operations(open_schema, {}, boundaries="")


def test_it_happens_to_an_agent_with_authority_too(open_schema: Any) -> None:
    # Only with authority do values of this one arrive where they are checked.
    check_operations(open_schema, {}, boundaries=":book", agent=AGENT, rejection=False)


@pytest.fixture(scope="module")
def proven_schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    keys = write_keys(tmp_path_factory.mktemp("proven") / "keys", public(KEY))
    return load(AuthSettings(modes=("token",), token=TokenSettings(keys=keys)))


def test_a_caller_without_proof_is_refused_where_authority_is_required(proven_schema: Any) -> None:
    check_operations(proven_schema, {})


def test_an_authenticated_caller_is_admitted(proven_schema: Any) -> None:
    now = int(time.time())
    token = sign(KEY, claims(aud=SERVER, agent_id=AGENT, iat=now, exp=now + 3600))
    check_operations(proven_schema, {"Authorization": f"Bearer {token}"})
