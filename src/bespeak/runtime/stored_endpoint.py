"""Endpoints as text that every process of a deployment can read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition, ExternalService, HandlerBinding, McpTool, RegisteredFunction
from bespeak.contract.recipe import Recipe
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.documents.projections.deployment_files import endpoint_data, handler_data
from bespeak.errors import ConfigError
from bespeak.runtime.bindings.function import resolve_function
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.findings import Findings
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Table, kind
from bespeak.text.source.span import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The published synthesis that an endpoint comes from."""

    synthesis_id: str
    expires: float
    """End, in seconds since 1970."""
    agent_id: str | None = None
    """Agent that alone may call it, in a row of an earlier version; such a row is not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEndpoint:
    """An endpoint with what it needs beside the configuration."""

    endpoint: Endpoint
    recipe: Recipe | None = None
    """Recipe of a composition that is not among those of the service."""
    origin: Origin | None = None
    explanation: tuple[str, ...] = ()
    """What each step of a synthesis does."""


def write_endpoint(endpoint: Endpoint, recipe: Recipe | None = None, origin: Origin | None = None, **more: Any) -> str:
    """Encode an endpoint as JSON, in the form of an endpoint file. Members of `more` are kept beside it.

    Raises ConfigError if its handler is a function that other processes cannot import.
    """
    data = endpoint_data(endpoint, "")
    data["handler"] = _handler(endpoint, endpoint.handler)
    document: dict[str, Any] = {"endpoint": data, **more}
    if recipe is not None:
        document["recipe"] = recipe.to_json()
    if origin is not None:
        document["origin"] = asdict(origin)
    return msgspec.json.encode(document).decode()


def read_endpoint(text: str, name: str) -> tuple[StoredEndpoint | None, list[Diagnostic]]:
    """Decode an endpoint; `name` identifies it in findings. Return None if any finding is an error."""
    try:
        data = decode_json(text)
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"it is {kind(data)}")
        origin = msgspec.convert(data.get("origin"), Origin | None)
        explanation = msgspec.convert(data.get("explanation", ()), tuple[str, ...])
    except msgspec.DecodeError as error:
        return None, [MALFORMED.found(f"this is not a JSON object: {error}", Location(name))]
    parts = {key: data[key] for key in ("endpoint", "recipe") if key in data}
    root = Table(parts, "", Findings(lambda _: Location(name)))
    block = root.table("recipe")
    recipe = None if block is None else read_settings(Recipe, block)
    endpoint, findings = endpoint_of(root, name)
    if endpoint is None:
        return None, findings
    return StoredEndpoint(endpoint=endpoint, recipe=recipe, origin=origin, explanation=explanation), findings


def _handler(endpoint: Endpoint, handler: HandlerBinding) -> dict[str, Any]:
    match handler:
        case ExternalService() | McpTool():
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
