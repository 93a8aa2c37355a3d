"""The parts of an AGIS document in the contract model, read without findings.

The validation passes report errors; they look at the document itself. Here an unusable value counts as missing, and
missing fields get the cautious default: irreversible, not idempotent, no confidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.contract.cost import read_cost
from bespeak.contract.data_manifest import DataClass, DataManifest
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.schema.closing import closing_keyword
from bespeak.contract.schema.compile import DIALECT
from bespeak.contract.semantic import CAPABILITIES, Semantic
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.agis.references import SharedSchemas, target
from bespeak.text.source.pointer import child
from bespeak.text.source.span import Location

UNBOUND: Final = OpaqueHandler(type="")
"""Handler of an endpoint that is declared but not bound."""

AGIS_VERSION: Final = "1.0"
"""Version of AGIS that documents name."""

AGTP_CAPABILITY: Final = "x-agtp-capability"
"""Key in a semantic block for a category of AGTP-API that AGIS lacks."""

AGIS_CAPABILITY: Final = {"creation": "transaction", "mechanics": "transaction", "domain_spanning": "modification"}
"""Categories of AGTP-API that AGIS lacks, each with the AGIS capability that calls for the same caution."""

_ANNOTATIONS: Final = frozenset({"$ref", "title", "description"})


def declared_endpoints(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every declaration with its pointer. Keys like `BOOK /room` are read too, though they do not conform."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            if isinstance(entry, dict):
                yield f"/endpoints/{index}", entry
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, dict):
                method, _, path = key.partition(" ")
                yield child("/endpoints", key), {"method": method, "path": path.strip(), **entry}


def read_endpoint(declared: Mapping[str, Any], shared: SharedSchemas, location: Location | None) -> Endpoint:
    """Read one entry of `endpoints` and copy the shared schemas it uses into its own."""
    semantic = read_semantic(_mapping(declared, "semantic"))
    return Endpoint(
        method=_text(declared, "method").upper(),
        path=_text(declared, "path"),
        description=_text(declared, "description") or semantic.intent,
        semantic=semantic,
        input_schema=_closed(_mapping(declared, "input"), shared),
        output_schema={"$schema": DIALECT, **shared.bundle(_mapping(declared, "output"))},
        errors=_read_errors(declared.get("errors")),
        handler=UNBOUND,
        namespace=_optional(declared, "namespace"),
        required_scopes=_texts(declared.get("required_scopes")),
        deprecated=_read_deprecation(_mapping(declared, "deprecated")),
        cost=read_cost(_mapping(declared, "cost"))[0],
        confirm=confirm if isinstance(confirm := declared.get("confirm"), bool) else None,
        internal=declared.get("internal") is True,
        since=_optional(declared, "since"),
        location=location,
    )


def read_semantic(block: Mapping[str, Any]) -> Semantic:
    """Read the semantic block. `confidence_guidance` is advice to agents, not the server's confidence."""
    capability = block.get(AGTP_CAPABILITY)
    if capability not in CAPABILITIES:
        capability = _text(block, "capability")
    transitions = _mapping(block, "state_transition")
    return Semantic(
        intent=_text(block, "intent"),
        actor=_text(block, "actor"),
        outcome=_text(block, "outcome"),
        capability=capability,
        confidence=_number(block, "confidence") or 0.0,
        impact=_text(block, "impact_tier") or "irreversible",
        is_idempotent=block.get("is_idempotent") is True,
        confidence_guidance=_number(block, "confidence_guidance"),
        parameter_hints=_mapping(block, "parameter_hints"),
        state_transition={name: change for name, change in transitions.items() if isinstance(change, str)},
        mcp_tool_name=_optional(block, "mcp_tool_name"),
    )


def read_vocabulary(block: object) -> Vocabulary:
    """Read the vocabulary block; return an empty one if it is missing."""
    if not isinstance(block, dict):
        return Vocabulary()
    return Vocabulary(
        declared_verbs=tuple(verb.upper() for verb in _texts(block.get("declared_verbs"))),
        domain=_optional(block, "domain"),
        namespace=_optional(block, "namespace"),
        version=_optional(block, "version"),
        negotiable=block.get("negotiable") is True,
    )


def read_data_manifest(block: object) -> DataManifest | None:
    """Read the data manifest, if there is one."""
    if not isinstance(block, dict):
        return None
    entries = block.get("available_data")
    return DataManifest(
        available_data=tuple(
            DataClass(
                name=_text(entry, "class"),
                description=_text(entry, "description"),
                formats=_texts(entry.get("formats")),
                sensitivity=_optional(entry, "sensitivity"),
                requires_authorization=_boolean(entry, "requires_authorization"),
            )
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict)
        ),
        pre_auth_discovery=_boolean(block, "pre_auth_discovery"),
    )


def _closed(schema: Mapping[str, Any], shared: SharedSchemas) -> Mapping[str, Any]:
    """Close an input schema against undeclared fields, unless it declares otherwise."""
    name = target(schema.get("$ref"), shared.schemas)
    if name is not None and isinstance(shared.schemas[name], dict) and schema.keys() <= _ANNOTATIONS:
        # A schema with a reference cannot be closed, but its target can.
        own = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**shared.alone(name), **own}
    else:
        schema = shared.bundle(schema)
    closed = {"$schema": DIALECT, "type": "object", **schema}
    closed.setdefault(closing_keyword(schema), False)
    return closed


def _read_errors(value: object) -> tuple[DeclaredError, ...]:
    if isinstance(value, dict):  # names with their descriptions, as endpoint files write them
        value = [{"name": name, "description": text} for name, text in value.items()]
    errors: list[DeclaredError] = []
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, str):
            errors.append(DeclaredError(entry))
        elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
            errors.append(DeclaredError(entry["name"], _text(entry, "description")))
    return tuple(errors)


def _read_deprecation(block: Mapping[str, Any]) -> Deprecation | None:
    deprecated_in = _text(block, "deprecated_in")
    if not deprecated_in:
        return None
    successor = _mapping(block, "successor")
    return Deprecation(
        deprecated_in=deprecated_in,
        removed_in=_optional(block, "removed_in"),
        successor_method=_optional(successor, "method"),
        successor_path=_optional(successor, "path"),
    )


def _text(block: Mapping[str, Any], key: str) -> str:
    value = block.get(key)
    return value if isinstance(value, str) else ""


def _optional(block: Mapping[str, Any], key: str) -> str | None:
    value = block.get(key)
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _number(block: Mapping[str, Any], key: str) -> float | None:
    value = block.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(block: Mapping[str, Any], key: str) -> bool | None:
    value = block.get(key)
    return value if isinstance(value, bool) else None


def _mapping(block: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = block.get(key)
    return value if isinstance(value, dict) else {}
