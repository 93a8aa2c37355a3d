"""What a proposed output promises about its values, compared with what the endpoints of its plan promise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.reference import resolve
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, nodes

Schema = Mapping[str, Any]

_EQUAL: Final = ("const", "multipleOf", "pattern", "uniqueItems")
_AT_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_AT_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength")
_NEVER: Final = frozenset(
    {
        *("minItems", "contains", "minContains", "maxContains", "minProperties", "propertyNames", "patternProperties"),
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    }
)
"""Promises about several values at once: filters, projections and joins do not keep them."""


class Promises:
    """The promises of a proposal's output that its plan keeps, and those that it does not."""

    def __init__(self, proposed: Endpoint, endpoints: Iterable[Endpoint]) -> None:
        self.unkept: list[str] = []
        """Promises that nobody keeps, like `rooms[].name` and its keyword."""
        self._made: dict[str, list[Schema]] = defaultdict(list)
        # A value that is given comes back as it was.
        for schema in (proposed.input_schema, *(endpoint.output_schema for endpoint in endpoints)):
            self._collect(schema)
        self._described = {
            name
            for _, node in nodes(dict(proposed.output_schema))
            for name in (node["properties"] if isinstance(node.get("properties"), dict) else ())
        }
        self.output: Schema = self._keep(proposed.output_schema, None, "")
        """The proposed output schema without them."""

    def _collect(self, schema: Schema) -> None:
        for at, node in nodes(dict(schema)):
            if len(at) > 1 and at[-2] == "properties":
                self._made[str(at[-1])].append(resolve(node, schema, most=5))

    def _keep(self, node: Any, name: str | None, at: str) -> Any:
        if not isinstance(node, dict):
            return node
        kept: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword == "required" and not self._described.issuperset(value):
                # No step fills a field that the proposal does not describe.
                self.unkept += [
                    f"`{one}` of {f'`{at}`' if at else 'the output'}" for one in value if one not in self._described
                ]
                kept[keyword] = [one for one in value if one in self._described]
            elif not self._is_kept(keyword, value, name):
                self.unkept.append(f"`{keyword}` of {f'`{at}`' if at else 'the output'}")
            elif keyword in NAMING_KEYWORDS and isinstance(value, dict):
                # Who refers to a definition is not known, so its promises may be those of any field.
                kept[keyword] = {
                    key: self._keep(one, key if keyword == "properties" else None, f"{at}.{key}".lstrip("."))
                    for key, one in value.items()
                }
            elif keyword in DATA_KEYWORDS:
                kept[keyword] = value
            elif isinstance(value, list):
                kept[keyword] = [self._keep(one, name, at) for one in value]
            else:
                kept[keyword] = self._keep(value, name, f"{at}[]" if keyword == "items" else at)
        return kept

    def _is_kept(self, keyword: str, value: Any, name: str | None) -> bool:
        if keyword in _NEVER:
            return False
        holds = _HOLDS.get(keyword)
        if holds is None or (keyword == "oneOf" and _are_apart(value)):
            return True
        made = self._made.get(name, []) if name is not None else [one for many in self._made.values() for one in many]
        return any(keyword in one and holds(one[keyword], value) for one in made)


def _is_within(made: Any, wanted: Any) -> bool:
    return isinstance(made, list) and isinstance(wanted, list) and all(value in wanted for value in made)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _are_apart(alternatives: Any) -> bool:
    """Return True if no value can have two of the alternatives: each has another type."""
    types = [one.get("type") if isinstance(one, dict) else None for one in alternatives]
    return all(isinstance(one, str) for one in types) and len(set(types)) == len(types) and "number" not in types


_HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys((*_EQUAL, "oneOf"), lambda made, wanted: made == wanted),
    **dict.fromkeys(_AT_MOST, lambda made, wanted: _is_number(made) and made <= wanted),
    **dict.fromkeys(_AT_LEAST, lambda made, wanted: _is_number(made) and made >= wanted),
    "enum": _is_within,
}
"""Whether a promise that is made includes the one that is wanted, by keyword."""
