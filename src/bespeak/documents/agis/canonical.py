"""The canonical form of an AGIS document: keys in one order, methods in capitals, endpoints in an array (AGIS 10).

The order is that of the JSON Schema: identity and address, vocabulary, data manifest, endpoints, shared schemas; within
a part, required keys come first. Keys unknown to the schema follow in their own order, and the contents of JSON Schemas
stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bespeak.documents.agis.shape import declared_endpoints
from bespeak.documents.schemas import load_schema


def canonical(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a document to canonical form. Values of an unexpected type stay unchanged."""
    document = _ordered(data, load_schema("agis")["properties"])
    endpoints = document.get("endpoints")
    if isinstance(endpoints, dict) and all(isinstance(entry, dict) for entry in endpoints.values()):
        document["endpoints"] = [entry for _, entry in declared_endpoints(endpoints)]
    _change(document, "endpoints", _each(_endpoint))
    _change(document, "vocabulary", _vocabulary)
    _change(document, "data_manifest", _data_manifest)
    return document


def _endpoint(declared: Any) -> Any:
    endpoint = _part("endpoint")(declared)
    if isinstance(endpoint, dict):
        _change(endpoint, "method", _capitals)
        _change(endpoint, "semantic", _part("semantic"))
        _change(endpoint, "errors", _each(_part("error")))
        _change(endpoint, "deprecated", _part("deprecated"))
        _change(endpoint, "cost", _part("cost"))
    return endpoint


def _vocabulary(declared: Any) -> Any:
    vocabulary = _part("vocabulary")(declared)
    if isinstance(vocabulary, dict):
        _change(vocabulary, "declared_verbs", _each(_capitals))
    return vocabulary


def _data_manifest(declared: Any) -> Any:
    manifest = _part("data_manifest")(declared)
    if isinstance(manifest, dict):
        _change(manifest, "available_data", _each(_part("data_class")))
    return manifest


_Form = Callable[[Any], Any]


def _part(name: str) -> _Form:
    properties: Final[Mapping[str, Any]] = load_schema("agis")["$defs"][name]["properties"]
    return lambda value: _ordered(value, properties) if isinstance(value, dict) else value


def _each(form: _Form) -> _Form:
    return lambda value: [form(item) for item in value] if isinstance(value, list) else value


def _change(block: dict[str, Any], key: str, form: _Form) -> None:
    if key in block:
        block[key] = form(block[key])


def _ordered(block: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    first = {key: block[key] for key in known if key in block}
    return {**first, **{key: value for key, value in block.items() if key not in first}}


def _capitals(value: Any) -> Any:
    """Write a method in capitals; leave anything but letters unchanged, because a formatter must not correct it."""
    return value.upper() if isinstance(value, str) and value.isascii() and value.isalpha() else value
