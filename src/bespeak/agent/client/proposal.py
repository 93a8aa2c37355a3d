"""A proposal: the complete definition of the endpoint that an agent asks for (AGTP-API 10.2, step 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.agent.client.field_notation import Fields, read_fields
from bespeak.contract.catalog.bundled import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import COMPOSITION_FAILED
from bespeak.contract.schema.reference import inline
from bespeak.contract.semantic import CAPABILITIES, IMPACTS
from bespeak.documents.manifest_json import parse_endpoint
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.brief import brief

_READING: Final = ("discovery", "retrieval", "analysis")
"""Capabilities whose verbs change nothing."""
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_TYPED: Final = ("type", "format", "enum")
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The definition of an endpoint as it is sent, and as the contract model reads it."""

    definition: Mapping[str, Any]
    endpoint: Endpoint


def read_proposal(definition: Mapping[str, Any]) -> Proposal:
    """Read a complete definition. Raises ConfigError if it is not one."""
    try:
        data = msgspec.json.encode(definition)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"The definition of the endpoint is not JSON: {error}.") from error
    endpoint, findings = parse_endpoint(data)
    if endpoint is None:
        reason = findings[0].message if findings else "it needs a method and a path"
        raise ConfigError(f"The definition of the endpoint is not valid: {reason}.")
    return Proposal(definition=definition, endpoint=endpoint)


def define(
    method: str,
    path: str,
    *,
    given: Fields = (),
    needs: Fields = (),
    intent: str | None = None,
    impact: str | None = None,
    known: Iterable[Endpoint] = (),
) -> Proposal:
    """Define the endpoint that an agent asks for.

    `impact` is the worst effect that the agent accepts, by default that of the verb. Inputs without a type take the
    one that the `known` endpoints agree on, else they are strings.
    """
    if impact is not None and impact not in IMPACTS:
        raise ConfigError(f"impact must be one of {', '.join(IMPACTS)}; got {brief(impact)}.")
    method = method.upper()
    verb = load_bundled().verbs.get(method)
    capability = next((name for name in verb.categories if name in CAPABILITIES), "") if verb else ""
    worst = impact or ("informational" if capability in _READING else "irreversible")
    said = intent or f"{method.capitalize()} {_words(path)}.".replace(" .", ".")
    return read_proposal(
        {
            "method": method,
            "path": path,
            "description": said,
            "semantic": {
                "intent": said,
                "actor": "agent",
                "outcome": _outcome(read_fields(needs)),
                "capability": capability or "domain_spanning",
                # The server lowers it to what its steps give; a lower value would be taken for theirs.
                "confidence": 1.0,
                "impact": worst,
                "is_idempotent": worst == "informational",
            },
            "input_schema": _input(path, read_fields(given), known),
            "output_schema": read_fields(needs),
            "errors": [COMPOSITION_FAILED],
            "handler": {"type": "composition"},
        }
    )


def _words(path: str) -> str:
    """Return the words of a path, parameters last: `/rooms/cheap` gives `rooms cheap`."""
    return " ".join(word for word in re.split(r"[/_-]+", _PARAMETER.sub("", path)) if word)


def _outcome(output: Mapping[str, Any]) -> str:
    names = list(output.get("properties", ()))
    return f"The caller has {', '.join(names[:8])}{' and more' if len(names) > 8 else ''}." if names else "It is done."


def _input(path: str, schema: dict[str, Any], known: Iterable[Endpoint]) -> dict[str, Any]:
    """Complete an input schema: the path's parameters, types where there are none, and no other fields."""
    properties = dict(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    for name in _PARAMETER.findall(path):
        properties.setdefault(name, {})
        if name not in required:
            required.append(name)
    untyped = [name for name, one in properties.items() if one == {}]
    if untyped:
        endpoints = tuple(known)
        properties |= {name: _agreed_type(name, endpoints) for name in untyped}
    done = {**schema, "properties": properties, "additionalProperties": False}
    return {**done, "required": required} if required else done


def _agreed_type(name: str, known: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the type that every endpoint gives an input of this name; a string if they differ or none has it."""
    found = {
        msgspec.json.encode(kept, order="sorted")
        for endpoint in known
        if isinstance(properties := endpoint.input_schema.get("properties"), Mapping)
        and isinstance(one := inline(properties.get(name), endpoint.input_schema), Mapping)
        and (kept := {key: one[key] for key in _TYPED if key in one})
    }
    return dict(msgspec.json.decode(found.pop())) if len(found) == 1 else dict(_TEXT)
