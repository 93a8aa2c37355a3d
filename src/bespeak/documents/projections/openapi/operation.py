"""One endpoint as an OpenAPI path: POST with a body, and GET if its route allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.capability_id import group_of
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_input import HttpInput, HttpParameter, place_input
from bespeak.documents.projections.openapi.circumstances import Circumstances
from bespeak.documents.projections.openapi.names import type_name
from bespeak.documents.projections.openapi.parameters import parameters_of, token_hints
from bespeak.documents.projections.openapi.responses import responses_of
from bespeak.documents.projections.openapi.schemas import PLACE, SchemaComponents, reference
from bespeak.documents.projections.openapi.security import security_of
from bespeak.protocol.exchange.headers import MEDIA_JSON

_NO_METHOD: Final = "It must not be the name of an AGTP method, because no path segment may be one."
"""Rule for path parameters (AGTP-API 5.1), in words: as a pattern of hundreds of verbs it would be unreadable."""


class Operations:
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
        """Build the operations at the route of one endpoint."""
        operation_id = self._ids[endpoint.key]
        input_name, output_name = self._names[operation_id]
        moved = self._schemas.add(input_name, endpoint.input_schema)
        self._schemas.add(output_name, endpoint.output_schema)
        placed = place_input(endpoint, moved)
        shared = self._shared(endpoint, (input_name, output_name))
        item: dict[str, Any] = {}
        if placed.path:
            item["parameters"] = [_parameter(parameter, "path") for parameter in placed.path]
        if placed.query is not None:
            item["get"] = {"operationId": operation_id, **shared, **self._get(endpoint, placed.query, output_name)}
        post_id = operation_id if placed.query is None else f"post_{operation_id}"
        body = reference(input_name) if placed.body is moved else self._body(input_name, placed)
        item["post"] = {"operationId": post_id, **shared, **self._post(endpoint, placed, body, output_name)}
        return item

    def _shared(self, endpoint: Endpoint, names: tuple[str, str]) -> dict[str, Any]:
        semantic = endpoint.semantic
        sentences = [semantic.intent, f"Outcome: {semantic.outcome}" if semantic.outcome else ""]
        described: dict[str, Any] = {
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
        }
        if endpoint.namespace is not None:
            described["x-agtp-namespace"] = endpoint.namespace
        if endpoint.deprecated is not None:
            described |= {"deprecated": True, "x-agtp-deprecated": endpoint.deprecated.to_json()}
        if endpoint.cost is not None:
            described["x-agtp-cost"] = endpoint.cost.to_json()
        if endpoint.confirm is not None or self._served.confirms(endpoint):
            described["x-agtp-confirm"] = self._served.confirms(endpoint)
        if endpoint.since is not None:
            described["x-agtp-since"] = endpoint.since
        described["x-agtp-token-hints"] = token_hints(endpoint)
        return described

    def _get(self, endpoint: Endpoint, query: Iterable[HttpParameter], output_name: str) -> dict[str, Any]:
        said = [_parameter(parameter, "query") for parameter in query]
        return {
            "parameters": said + self._beside(endpoint),
            "responses": responses_of(endpoint, self._served, reference(output_name), has_body=False),
        }

    def _post(self, endpoint: Endpoint, placed: HttpInput, body: Mapping[str, Any], output_name: str) -> dict[str, Any]:
        return {
            "parameters": self._beside(endpoint),
            "requestBody": {"required": placed.body_required, "content": {MEDIA_JSON: {"schema": body}}},
            "responses": responses_of(endpoint, self._served, reference(output_name), has_body=True),
        }

    def _beside(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        return [{"$ref": f"#/components/parameters/{name}"} for name in parameters_of(endpoint, self._served)]

    def _body(self, input_name: str, placed: HttpInput) -> dict[str, str]:
        """Return the input without path parameters, as a schema beside the whole one."""
        name = self._schemas.reserve(input_name.removesuffix("Input") + "Body")
        self._schemas.schemas[name] = placed.body
        return reference(name)


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
