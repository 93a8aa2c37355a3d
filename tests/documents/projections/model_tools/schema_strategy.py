"""JSON Schemas of every kind, and values that meet them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bespeak.contract.schema.subschemas import target
from bespeak.contract.schema.view import Members, members_of

Schema = dict[str, Any]

NAMES = st.sampled_from(["name", "beds", "kind", "ö", "a/b", "$top", "f[x]", "key", "value", "other_members", "input"])
TEXTS: st.SearchStrategy[Schema] = st.sampled_from(
    [
        *({}, {}, {}, {"description": "A thing"}, {"title": "Thing"}),
        *({"examples": ["x"]}, {"default": None}, {"deprecated": True}),
    ]
)
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [
        *({"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}),
        *({"type": "string", "minLength": 2, "maxLength": 5}, {"type": "string", "pattern": "^[a-c]+$"}),
        *({"type": "string", "pattern": r"^(?=a)\w+$"}, {"type": "string", "format": "date"}),
        *({"type": "string", "format": "uri"}, {"type": "string", "contentEncoding": "base64"}),
        *({"type": "integer", "minimum": 1, "maximum": 9, "format": "int32"}, {"type": "number", "multipleOf": 0.5}),
        *({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 4}, {"minimum": 3}, {"minLength": 1}),
        *({"enum": ["a", "b"]}, {"enum": ["a", 1, None, True]}, {"enum": [1, 2.5]}, {"enum": [{"a": 1}, [1], "x"]}),
        *({"const": "only"}, {"const": None}, {"const": 4}, {"const": [1]}, {"enum": [True, False]}, {"const": False}),
        *({"type": ["string", "null"]}, {"type": ["integer", "string", "array"]}, {"type": ["object", "null"]}),
        *({}, True, {"type": "object"}, {"type": "array"}, {"type": "array", "items": True}),
        *({"not": {"type": "string"}}, {"type": "string", "not": {"const": "x"}}),
        *({"$ref": f"#{place}"} for place in ("anchor", "/$defs/Guest", "/$defs/Tree", "/$defs/W%C3%A4sche%20~1")),
        *({"$ref": "#/$defs/Pet"}, {"$ref": "#/$defs/Guest", "description": "Who stays"}),
    ]
)
_KIND = {"type": "object", "required": ["kind"]}
DEFINITIONS = {
    "Guest": {"type": "object", "properties": {"name": {"type": "string"}, "of": {"$ref": "#/$defs/Tree"}}},
    "Tree": {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "name": {"type": "string"}},
        "required": ["below"],
    },
    "Wäsche /": {"type": "string", "$anchor": "anchor"},
    "Cat": {**_KIND, "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}},
    "Dog": {
        "allOf": [{**_KIND, "properties": {"kind": {"const": "dog"}}}, {"properties": {"bad": {"type": "boolean"}}}]
    },
    "Pet": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
}


_A = {"required": ["a"]}
_EITHER = [{"required": ["name"]}, {"required": ["beds"]}]


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(NAMES, inner, max_size=4)
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(_object, properties, st.booleans(), st.sampled_from([None, False, True]) | inner, TEXTS),
        st.builds(lambda items, texts: {"type": "array", "items": items, **texts}, inner, TEXTS),
        st.builds(
            lambda first, items: {"type": "array", "prefixItems": first, **items},
            *(some, st.sampled_from([{}, {"items": False}])),
        ),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner),
        inner.map(lambda value: {"type": "object", "patternProperties": {"^x": value}, "additionalProperties": False}),
        st.builds(
            lambda options, key, texts: {key: options, **texts},
            *(some, st.sampled_from(["anyOf", "oneOf", "allOf"]), TEXTS),
        ),
        st.builds(lambda one, other: {"allOf": [one, other]}, inner, inner),
        properties.map(lambda names: {**_object(names, True, None, {"description": "x"}), "anyOf": _EITHER}),
        st.builds(
            lambda one, other: {
                "type": "object",
                "properties": {"a": one},
                "anyOf": [{"properties": {"b": other}}, _A],
            },
            *(inner, inner),
        ),
        st.builds(lambda one, other: {"if": one, "then": other, "type": ["string", "integer"]}, inner, inner),
    )


def _object(properties: Schema, all_required: bool, others: Any, texts: Schema) -> Schema:
    names = list(properties)
    made: Schema = {"type": "object", "properties": properties, **texts}
    made["required"] = names if all_required else names[::2]
    return made if others is None else {**made, "additionalProperties": others}


SCHEMAS: st.SearchStrategy[Any] = st.recursive(SCALARS, _nested, max_leaves=8)


@st.composite
def inputs(draw: st.DrawFn) -> Schema:
    """Draw the input schema of an endpoint."""
    properties = draw(st.dictionaries(NAMES, SCHEMAS, max_size=4))
    made: Schema = {"type": "object", "properties": properties, "$defs": DEFINITIONS}
    made["required"] = [name for name in properties if draw(st.booleans())]
    if draw(st.booleans()):
        made["additionalProperties"] = False
    if draw(st.integers(0, 9)) == 0:
        made["anyOf"] = [draw(SCHEMAS), {"type": "object"}]
    return made


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.sampled_from(["a", "abc", "only", "2027-01-01", "x:y", "YQ=="])
    | st.sampled_from([0.5, 2.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=3,
)


@st.composite
def values(draw: st.DrawFn, schema: Any, root: Schema, depth: int = 0) -> Any:
    """Draw a value that probably meets a schema."""
    if not isinstance(schema, dict) or depth > 8:
        return draw(VALUES)
    if "$ref" in schema:
        named = DEFINITIONS["Wäsche /"] if schema["$ref"] == "#anchor" else target(schema["$ref"], root)
        return draw(values(named, root, depth + 1))
    for key in ("enum", "anyOf", "oneOf"):
        if key in schema and key != "enum" and ("properties" not in schema or depth % 2):
            return draw(values(draw(st.sampled_from(schema[key])), root, depth + 1))
        if key == "enum" and key in schema:
            return draw(st.sampled_from(schema[key]))
    if "const" in schema:
        return schema["const"]
    if "allOf" in schema:
        parts = [draw(values(part, root, depth + 1)) for part in schema["allOf"]]
        if all(isinstance(part, dict) for part in parts):
            return {key: value for part in parts for key, value in part.items()}
        return draw(st.sampled_from(parts))
    kinds = schema.get("type") or ("object" if "properties" in schema else "")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object":
        return draw(_members(schema, root, depth))
    if kind == "array":
        first = [draw(values(part, root, depth + 1)) for part in schema.get("prefixItems", ())]
        more = draw(st.integers(0, 2)) if schema.get("items") is not False and depth < 4 else 0
        return first + [draw(values(schema.get("items", {}), root, depth + 1)) for _ in range(more)]
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(["abc", "a", "bcb", "2027-01-01", "x:y", "YQ=="]),
        "integer": st.integers(-1, 9),
        "number": st.sampled_from([0.5, 2, 2.5, -1]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(plain.get(kind, VALUES))


@st.composite
def _members(draw: st.DrawFn, schema: Schema, root: Schema, depth: int) -> Any:
    made = {}
    for name, part in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or (depth < 4 and draw(st.booleans())):
            made[name] = draw(values(part, root, depth + 1))
    others = schema.get("additionalProperties")
    if others not in (None, False) and draw(st.booleans()):
        made[draw(st.sampled_from(["more", "name", "z"]))] = draw(values(others, root, depth + 1))
    for part in schema.get("patternProperties", {}).values():
        if draw(st.booleans()):
            made["x1"] = draw(values(part, root, depth + 1))
    if "properties" not in schema and others is None and "patternProperties" not in schema:
        made.update(draw(st.dictionaries(NAMES, VALUES, max_size=1)))
    return made


def is_declared(value: Any, schema: Schema) -> bool:
    """Return True if a value has only members that its schema declares or expects."""
    return _is_declared(value, members_of(schema))


def _is_declared(value: Any, members: Members) -> bool:
    if isinstance(value, list):
        return all(_is_declared(item, members.element or members.anything) for item in value)
    if not isinstance(value, dict):
        return True
    return all(
        (members.declares(name) or members.takes_any) and _is_declared(item, members.below(name))
        for name, item in value.items()
    )
