"""Endpoints as text that every process of a deployment can read."""

from __future__ import annotations

from typing import Any

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition, ExternalService, HandlerBinding, RegisteredFunction
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.documents.projections.deployment_files import endpoint_data, handler_data
from bespeak.errors import ConfigError
from bespeak.runtime.bindings.function import resolve_function
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.table import Table, kind
from bespeak.text.source.span import Location


def write_endpoint(endpoint: Endpoint) -> str:
    """Encode an endpoint as JSON, in the form of an endpoint file.

    Raises ConfigError if its handler is a function that other processes cannot import.
    """
    data = endpoint_data(endpoint, "")
    data["handler"] = _handler(endpoint, endpoint.handler)
    return msgspec.json.encode({"endpoint": data}).decode()


def read_endpoint(text: str, name: str) -> tuple[Endpoint | None, list[Diagnostic]]:
    """Decode an endpoint; `name` identifies it in findings. Return None if any finding is an error."""
    try:
        data = decode_json(text)
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"it is {kind(data)}")
    except msgspec.DecodeError as error:
        return None, [MALFORMED.found(f"this is not a JSON object: {error}", Location(name))]
    return endpoint_of(Table(data, "", Findings(lambda _: Location(name))), name)


def _handler(endpoint: Endpoint, handler: HandlerBinding) -> dict[str, Any]:
    match handler:
        case ExternalService():
            return handler_data(handler, "")
        case Composition(recipe=recipe):
            return {"type": handler.type, "recipe": recipe}
        case RegisteredFunction(function=dotted, target=target, blocking=blocking):
            found = resolve_function(dotted)
            if isinstance(found, str) or (target is not None and found is not target):
                raise ConfigError(
                    f"{endpoint} is stored, so every process must be able to import its function {dotted!r}; "
                    "put it at the top level of a module."
                )
            return {"type": handler.type, "function": dotted, **({"blocking": True} if blocking else {})}
        case _:
            raise ConfigError(f"{endpoint} has a handler of type {handler.type!r}, which cannot be stored.")
