"""The OpenAPI 3.1 document of a service for HTTP clients, derived from the manifest (AGTP-API 14.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import capability_ids, group_of
from bespeak.contract.http_route import HttpInput, HttpParameter, http_route, is_scalar, place_input
from bespeak.contract.policy import Policies
from bespeak.contract.schema.file_schema import file_fields
from bespeak.contract.schema.view import SchemaView, members_of
from bespeak.contract.service import UNSPECIFIED, ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.openapi.responses import (
    HEADERS,
    PLACE,
    PROBLEM,
    PROBLEM_SCHEMA,
    Circumstances,
    SchemaComponents,
    reference,
    responses_of,
    shared_responses,
    type_name,
)
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.protocol.exchange.headers import MEDIA_JSON, MEDIA_MANIFEST

_SCOPE: Final = r"(?:[a-z0-9_-]+|\*)(?::(?:[a-z0-9_-]+|\*))+"

_CENTS: Final = 2
_MONEY: Final = {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,2})?$"}
_WHOLE: Final = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999}

_SIMPLE: Final = {"$defs", "$schema", "type", "properties", "required", "additionalProperties", "description"}
"""Keywords of an object whose members are exactly its properties."""

_AGENT: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

_KEY: Final = {"type": "string", "pattern": "^[!-~]{1,255}$"}
_BUDGET: Final = {
    "type": "object",
    "properties": {
        **{unit: _MONEY if places == _CENTS else _WHOLE for unit, places in UNITS.items() if places <= _CENTS},
        "compute-seconds": {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,9})?$"},
    },
    "additionalProperties": False,
    "minProperties": 1,
}


def _header(name: str, about: str, schema: Mapping[str, Any], *, required: bool = False) -> Mapping[str, Any]:
    needed = {"required": True} if required else {}
    return {"name": name, "in": "header", **needed, "description": about, "schema": schema}


def _hint(name: str, about: str, **schema: str) -> Mapping[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AgentId": _header("Agent-ID", "Id of the calling agent. This server accepts it without proof.", _AGENT),
    "RequiredAgentId": _header(
        "Agent-ID",
        "Id of the calling agent, needed for its authority. This server accepts it without proof.",
        _AGENT,
        required=True,
    ),
    "AuthorityScope": _header(
        "Authority-Scope",
        "The scopes the agent acts with, separated by commas.",
        {"type": "string", "pattern": f"^(?:|{_SCOPE}(?: ?, ?{_SCOPE}){{0,15}})$"},
    ),
    "BudgetLimit": {
        "name": "Budget-Limit",
        "in": "header",
        "description": "Maximum cost of the call, such as `tokens=5000,USD=0.50`. A call that costs more is refused.",
        "style": "simple",
        "explode": True,
        "schema": _BUDGET,
    },
    "ConfirmationId": _header(
        "Confirmation-ID",
        "The id from the refusal that asked for a confirmation, once the call is confirmed.",
        {"type": "string", "pattern": "^[!-~]{1,128}$"},
    ),
    "IdempotencyKey": _header(
        "Idempotency-Key", "A repeated key gets the first answer again, without a second execution.", _KEY
    ),
    "RequiredIdempotencyKey": _header(
        "Idempotency-Key",
        "Required, because the call cannot be undone. A repeated key gets the first answer again.",
        _KEY,
        required=True,
    ),
    "TaskId": _header("Task-ID", "The caller's id for its task; answers repeat it.", {"type": "string"}),
    "Compact": _hint("compact", "`true` to omit empty optional fields from the answer.", type="boolean"),
    "Fields": _hint(
        "fields",
        "Fields of the answer to return, separated by commas: `id,room.name`. Other fields are omitted, even if the "
        "schema requires them.",
        type="string",
    ),
    "Since": _hint("since", "Return only changes since this time.", type="string", format="date-time"),
}


def parameters_of(endpoint: Endpoint, circumstances: Circumstances) -> list[str]:
    """Return the names of the parameters that an endpoint takes beside its input."""
    names = ["TaskId"]
    if circumstances.is_open:
        names += ["RequiredAgentId" if circumstances.needs_authority(endpoint) else "AgentId", "AuthorityScope"]
    if circumstances.needs_key(endpoint):
        names.append("RequiredIdempotencyKey")
    elif circumstances.takes_key(endpoint):
        names.append("IdempotencyKey")
    if endpoint.cost is not None:
        names.append("BudgetLimit")
    if circumstances.keeps_state and circumstances.confirms(endpoint):
        names.append("ConfirmationId")
    # `fields` selects a part of the answer's schema, which OpenAPI cannot express: an operation with this parameter
    # could not describe any answer. So it is documented with the other hints, beside the parameters.
    return names + [hint.capitalize() for hint in token_hints(endpoint) if hint != "fields"]


def token_hints(endpoint: Endpoint) -> list[str]:
    """Return the names of the hints an endpoint supports; an input field of the same name takes precedence."""
    hints = ["compact", "fields", *(["since"] if endpoint.since is not None else [])]
    schema = endpoint.input_schema
    if schema.keys() <= _SIMPLE:
        return [hint for hint in hints if hint not in schema.get("properties", ())]
    own = members_of(schema)
    return [hint for hint in hints if not own.declares(hint)]


_SCHEMES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "token": (
        "Bearer",
        {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token that names the agent and the scopes it was granted.",
        },
    ),
    "key": (
        "ApiKey",
        {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "A static key of the agent, with its scopes; also accepted as a bearer token.",
        },
    ),
    "mtls": (
        "ClientCertificate",
        {"type": "mutualTLS", "description": "The agent's certificate, presented when the connection is made."},
    ),
    "signed": (
        "AgentSignature",
        {
            "type": "apiKey",
            "in": "header",
            "name": "Agent-Signature",
            "description": "A detached JWS by the agent's Ed25519 key over this one request; Agent-ID goes with it.",
        },
    ),
}


def security_schemes(modes: Iterable[str]) -> dict[str, Any]:
    """Build `components.securitySchemes`: one for each mode that proves an identity, so none for the open mode."""
    return dict(_SCHEMES[mode] for mode in modes if mode in _SCHEMES)


def security_of(endpoint: Endpoint, circumstances: Circumstances) -> list[dict[str, list[str]]]:
    """Return the alternatives of credentials for a call; the empty one is for anonymous callers."""
    scopes = list(endpoint.required_scopes)
    alternatives = [{_SCHEMES[mode][0]: scopes} for mode in circumstances.modes if mode in _SCHEMES]
    return alternatives if circumstances.needs_authority(endpoint) or not alternatives else [{}, *alternatives]


_NO_METHOD: Final = "It must not be the name of an AGTP method, because no path segment may be one."
"""Rule for path parameters (AGTP-API 5.1), in words: as a pattern of hundreds of verbs it would be unreadable."""


class OperationBuilder:
    """Builds the operations of a service and collects their schemas."""

    def __init__(self, ids: Mapping[tuple[str, str], str], schemas: SchemaComponents, served: Circumstances) -> None:
        self._ids = ids
        self._schemas = schemas
        self._served = served
        self._names: dict[str, tuple[str, str]] = {}

    def reserve(self, endpoint: Endpoint) -> None:
        """Reserve the schema names of an endpoint; call it for all endpoints before the first `path_item`."""
        operation_id = self._ids[endpoint.key]
        name = type_name(operation_id)
        self._names[operation_id] = (self._schemas.reserve(f"{name}Input"), self._schemas.reserve(f"{name}Output"))

    def path_item(self, endpoint: Endpoint) -> dict[str, Any]:
        operation_id = self._ids[endpoint.key]
        input_name, output_name = self._names[operation_id]
        moved = self._schemas.add(input_name, endpoint.input_schema)
        self._schemas.add(output_name, endpoint.output_schema)
        placed = place_input(endpoint, moved)
        shared = self._shared(endpoint, (input_name, output_name))
        item: dict[str, Any] = {}
        if placed.path:
            item["parameters"] = [_parameter(parameter, "path") for parameter in placed.path]
        output, beside = reference(output_name), parameters_of(endpoint, self._served)
        taken = [{"$ref": f"#/components/parameters/{name}"} for name in beside]
        if placed.query is not None:
            item["get"] = {
                "operationId": operation_id,
                **shared,
                "parameters": [_parameter(parameter, "query") for parameter in placed.query] + taken,
                "responses": responses_of(endpoint, self._served, output, has_body=False),
            }
        body_name = input_name
        if placed.body is not moved:
            body_name = self._schemas.reserve(input_name.removesuffix("Input") + "Body")
            self._schemas.schemas[body_name] = placed.body
        item["post"] = {
            "operationId": operation_id if placed.query is None else f"post_{operation_id}",
            **shared,
            "parameters": taken,
            "requestBody": {
                "required": placed.body_required,
                "content": {MEDIA_JSON: {"schema": reference(body_name)}, **_form(endpoint, placed)},
            },
            "responses": responses_of(endpoint, self._served, output, has_body=True),
        }
        return item

    def _shared(self, endpoint: Endpoint, names: tuple[str, str]) -> dict[str, Any]:
        semantic = endpoint.semantic
        sentences = [semantic.intent, f"Outcome: {semantic.outcome}" if semantic.outcome else ""]
        described = {
            "summary": endpoint.description,
            "description": "\n\n".join(filter(None, sentences)),
            "tags": [group_of(endpoint)],
            "security": security_of(endpoint, self._served),
            "x-agtp-method": endpoint.method,
            "x-agtp-path": endpoint.path,
            "x-agtp-semantic": semantic.to_json(),
            "x-agtp-input": PLACE + names[0],
            "x-agtp-output": PLACE + names[1],
            "x-agtp-required-scopes": list(endpoint.required_scopes),
            "x-agtp-errors": list(endpoint.error_names),
            "x-agtp-namespace": endpoint.namespace,
            "deprecated": True if endpoint.deprecated else None,
            "x-agtp-deprecated": endpoint.deprecated.to_json() if endpoint.deprecated else None,
            "x-agtp-cost": endpoint.cost.to_json() if endpoint.cost is not None else None,
            "x-agtp-confirm": self._served.confirms(endpoint) or (None if endpoint.confirm is None else False),
            "x-agtp-since": endpoint.since,
            "x-agtp-streams": endpoint.streams or None,
            "x-agtp-token-hints": token_hints(endpoint),
        }
        return {name: value for name, value in described.items() if value is not None}


def _form(endpoint: Endpoint, placed: HttpInput) -> dict[str, Any]:
    """Describe the form that an endpoint takes in place of JSON, if its input has files."""
    given = endpoint.input_schema
    files, declared = file_fields(given), given.get("properties", {})
    properties = {
        name: schema
        for name, schema in placed.body.get("properties", {}).items()
        if name in files or is_scalar(SchemaView(declared.get(name), given).types)
    }
    if not files or not properties.keys() >= {*placed.body.get("required", ())}:
        return {}
    for name, field in files.items():
        binary = {"type": "string", "format": "binary", "description": f"A file of at most {field.max_bytes} bytes."}
        properties[name] = {"type": "array", "maxItems": field.many, "items": binary} if field.many else binary
    types = {name: field.media_types for name, field in files.items() if field.media_types}
    encoding = {name: {"contentType": ", ".join(accepted)} for name, accepted in types.items()}
    schema = {"type": "object", "properties": properties, "required": placed.body.get("required", [])}
    return {"multipart/form-data": {"schema": schema, **({"encoding": encoding} if encoding else {})}}


def _parameter(parameter: HttpParameter, where: str) -> dict[str, Any]:
    schema = parameter.schema if isinstance(parameter.schema, Mapping) else {}
    description = schema.get("description")
    described = [description] if isinstance(description, str) and description else []
    if where == "path" and schema.get("type") == "string":
        described.append(_NO_METHOD)
    written: dict[str, Any] = {"name": parameter.name, "in": where}
    if described:
        written["description"] = " ".join(described)
    if parameter.required:
        written["required"] = True
    return {**written, "schema": schema}


OPENAPI_VERSION: Final = "3.1.1"


def project_openapi(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Iterable[str],
    *,
    version: str,
    policies: Policies | None = None,
    keeps_state: bool = True,
    keys_required: bool = False,
    catalog_warnings: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build the document of the HTTP face, without built-in and internal endpoints."""
    listed = [service.published(endpoint) for endpoint in endpoints if endpoint.is_listed]
    served = Circumstances(
        modes=tuple(modes),
        policies=policies or service.policies,
        rate_limits=service.rate_limits,
        knows_agents=bool(service.agents) or keeps_state,
        keeps_state=keeps_state,
        keys_required=keys_required,
        catalog_warnings=catalog_warnings or {},
    )
    schemas = SchemaComponents({PROBLEM: PROBLEM_SCHEMA})
    operations = OperationBuilder(capability_ids(listed), schemas, served)
    for endpoint in listed:
        operations.reserve(endpoint)
    return {
        "openapi": OPENAPI_VERSION,
        "info": _info(service, settings, version),
        "servers": [{"url": settings.url or "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(map(group_of, listed))],
        "paths": {http_route(endpoint).path: operations.path_item(endpoint) for endpoint in listed},
        "components": {
            "schemas": schemas.schemas,
            "responses": shared_responses(),
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "securitySchemes": security_schemes(served.modes),
        },
    }


def _info(service: Service, settings: HttpSettings, version: str) -> dict[str, Any]:
    identity = service.identity
    note = f"Derived from the AGTP manifest at {service.address}, which is authoritative."
    return {
        "title": identity.name or identity.server_id,
        "version": version,
        "description": f"{service.description}\n\n{note}" if service.description else note,
        **_contact(identity),
        "x-agtp-derived-from": "agtp-manifest",
        "x-agtp-manifest": service.address,
        "x-agtp-manifest-on-http": {"url": f"{settings.url or ''}/", "accept": MEDIA_MANIFEST},
        "x-agtp-server-id": identity.server_id,
    }


def _contact(identity: ServerIdentity) -> dict[str, Any]:
    """Build the contact object; OpenAPI allows an e-mail address or a URL."""
    contact: dict[str, str] = {}
    if identity.operator and identity.operator != UNSPECIFIED:
        contact["name"] = identity.operator
    given = identity.contact.strip().removeprefix("mailto:")
    if given.startswith(("https://", "http://")):
        contact["url"] = given
    elif given.count("@") == 1 and not given.startswith("@") and not any(map(str.isspace, given)):
        contact["email"] = given
    return {"contact": contact} if contact else {}
