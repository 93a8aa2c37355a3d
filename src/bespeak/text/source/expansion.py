"""Documents with shorthand fields, expanded to JSON Schemas that keep their places."""

from __future__ import annotations

from typing import Any

from bespeak.text.source.pointer import child
from bespeak.text.source.shorthand import (
    expand_input,
    expand_output,
    field_schema,
    is_short_input,
    is_short_output,
    joined,
)
from bespeak.text.source.tree import Tree


def expand_shorthand(data: Any) -> Any:
    """Expand shorthand inputs and outputs of a document to JSON Schema."""
    return _document(data, {})


def expand_tree(tree: Tree) -> None:
    """Expand the data of a tree; an expanded field has the place of its shorthand."""
    origins: dict[str, str] = {}
    tree.data = _document(tree.data, origins)
    tree.origins.update(origins)  # a tree that has been expanded has nothing short any more


def _document(data: Any, origins: dict[str, str]) -> Any:
    if not isinstance(data, dict):
        return data
    data = _endpoint(data, "", origins)  # a fragment of an endpoint may be a document of its own
    endpoints = data.get("endpoints")
    if not isinstance(endpoints, list):
        return data
    made = [
        _endpoint(endpoint, f"/endpoints/{index}", origins) if isinstance(endpoint, dict) else endpoint
        for index, endpoint in enumerate(endpoints)
    ]
    if all(one is other for one, other in zip(made, endpoints, strict=True)):
        return data
    return {**data, "endpoints": made}


def _endpoint(endpoint: dict[str, Any], at: str, origins: dict[str, str]) -> dict[str, Any]:
    made = endpoint
    given: Any = endpoint.get("input")
    if is_short_input(given):
        here = f"{at}/input"
        made = {**made, "input": expand_input(given)}
        required = _places(given.get("required", []), f"{here}/required")
        optional = _places(given.get("optional", []), f"{here}/optional")
        _remember(here, [*required, *optional], list(dict(required)), origins)
    given = endpoint.get("output")
    if is_short_output(given):
        here = f"{at}/output"
        made = {**made, "output": expand_output(given)}
        fields = _places(given, here) if isinstance(given, list) else [(name, child(here, name)) for name in given]
        _remember(here, fields, list(dict(fields)), origins)
    given = endpoint.get("errors")
    if isinstance(given, dict) and all(value is None for value in given.values()):
        here = f"{at}/errors"
        made = {**made, "errors": list(given)}
        origins[here] = here
        origins.update((child(here, index), child(here, name)) for index, name in enumerate(given))
    return made


def _places(fields: list[Any], at: str) -> list[tuple[str, str]]:
    return [(field_schema(text)[0], child(at, index)) for text, index in joined(fields)]


def _remember(here: str, fields: list[tuple[str, str]], required: list[str], origins: dict[str, str]) -> None:
    places = dict(reversed(fields))  # the first of two fields with one name
    origins[here] = here
    for name, place in places.items():
        origins[child(f"{here}/properties", name)] = place
    for index, name in enumerate(required):
        origins[child(f"{here}/required", index)] = places[name]
