"""Schemas in a plain form: one type each, without `allOf`, `oneOf`, `const`, conditions and boolean schemas.

A node of this form is a reference, a union (`anyOf`) or a set of keywords; each may have texts. The form accepts
every value of the original. What it no longer says becomes a sentence. Before that, references to any place of the
schema become references to definitions with plain names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from bespeak.contract.schema.subschemas import MAX_DEPTH, Parts, nodes, transplant, with_children
from bespeak.contract.schema.view import json_type
from bespeak.documents.projections.model_tools.passes import (
    NOTHING,
    PLACE,
    TEXTS,
    Definitions,
    Mark,
    Node,
    ToolSchema,
    bare,
    item_at,
    named,
    sentence,
    texts_of,
    types,
)
from bespeak.text.identifiers import unused
from bespeak.text.reading.table import as_list, as_texts
from bespeak.text.source.pointer import pointer, value_at

_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")


class TooComplexError(Exception):
    """A schema is too deep or too large to be converted."""


def hoist(schema: Mapping[str, Any]) -> ToolSchema:
    """Read a schema; a reference that leads nowhere accepts everything. Raises TooComplexError if it is too deep."""
    if any(len(at) > MAX_DEPTH for at, _ in nodes(dict(schema))):
        raise TooComplexError
    names: dict[Parts, str] = {}
    taken: set[str] = set()

    def refer(parts: Parts) -> str:
        if parts not in names:
            names[parts] = _name(parts, taken)
            taken.add(names[parts])
        return PLACE + names[parts]

    moved = transplant(schema, refer)
    definitions: dict[str, Node] = {}
    for parts, name in names.items():
        target = value_at(moved, pointer(parts), {})
        definitions[name] = target if isinstance(target, dict) else {} if target is True else {"not": {}}
    return ToolSchema(moved, definitions)


def _name(parts: Parts, taken: set[str]) -> str:
    plain = _OTHER.sub("_", parts[-1] if parts else "root").strip("_")[:40] or "schema"
    return unused(plain, taken)


_OPEN: Final = "additionalProperties"
_GREATER: Final = frozenset({"minLength", "minimum", "exclusiveMinimum", "minItems", "minProperties"})
_SMALLER: Final = frozenset({"maxLength", "maximum", "exclusiveMaximum", "maxItems", "maxProperties"})
_STRUCTURE: Final = frozenset({"properties", "patternProperties", _OPEN, "items", "prefixItems"})
_PLAIN: Final = ("type", "enum", "required", "pattern", "format", "multipleOf", "uniqueItems", "contentEncoding")
_KEPT: Final = TEXTS.union(_GREATER, _SMALLER, _STRUCTURE, _PLAIN)
_TOLD: Final = (  # Keywords that become sentences at once, because no provider supports them.
    *("not", "contains", "minContains", "maxContains", "propertyNames", "dependentRequired", "dependentSchemas"),
    *("contentMediaType", "contentSchema"),
)

_FURTHER: Final = "The service checks further conditions."
_MOST_OPTIONS: Final = 24  # maximum alternatives of a union that is merged with another one
_MOST_NODES: Final = 50_000
_MOST_MERGES: Final = 50_000  # maximum members that are merged: half a second
_DEEPEST: Final = 60


@dataclass(slots=True)
class Merger:
    """Brings the schemas of a document into the plain form."""

    _raw: Definitions
    _done: dict[str, Node] = field(default_factory=dict)
    _active: set[str] = field(default_factory=set)
    _merging: list[tuple[str | None, str | None]] = field(default_factory=list)
    _nodes: int = 0
    _merges: int = 0

    def document(self, root: Node) -> ToolSchema:
        """Return the document in plain form. Raises TooComplexError if that takes too much work."""
        return ToolSchema(self.plain(root), {name: self._definition(name) for name in self._raw})

    def plain(self, schema: Any) -> Node:
        """Return one schema, and all below it, in plain form."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise TooComplexError
        if not isinstance(schema, dict):
            return NOTHING if schema is False else {}
        node = self._own(schema)
        for part in as_list(schema.get("allOf")):
            node = self._merge(node, self.plain(part))
        reference = schema.get("$ref")
        if isinstance(reference, str):
            lost = {Mark.UNFIT: f"the reference {reference[:80]} leads nowhere"}
            node = self._merge(node, {"$ref": reference} if named({"$ref": reference}) in self._raw else lost)
        for keyword in ("anyOf", "oneOf"):
            if as_list(schema.get(keyword)):
                node = self._merge(node, self._union(schema[keyword], keyword))
        if "unevaluatedProperties" in schema:
            node = self._sealed(node, self.plain(schema["unevaluatedProperties"]))
        return node

    def _definition(self, name: str) -> Node:
        """Return a definition in plain form; an empty one where it is defined by itself."""
        if name not in self._done:
            if name in self._active:
                return {}
            if len(self._active) > _DEEPEST:
                raise TooComplexError
            self._active.add(name)
            made = self.plain(self._raw[name])
            self._done[name] = self._expanded(made)  # a definition is never a mere other name
            self._active.discard(name)
        return self._done[name]

    def _own(self, schema: Node) -> Node:
        node = {key: value for key, value in schema.items() if key in _KEPT and _is_usable(key, value)}
        if "type" in node:
            node["type"] = types(node)
        if "const" in schema:
            wanted = _key(schema["const"])
            node["enum"] = [value for value in node.get("enum", [schema["const"]]) if _key(value) == wanted]
        for keyword in ("properties", "patternProperties"):
            if keyword in node:
                node[keyword] = {name: self.plain(part) for name, part in node[keyword].items()}
        for keyword in (_OPEN, "items"):
            if keyword in node:
                node[keyword] = self.plain(node[keyword])
        if "prefixItems" in node:
            node["prefixItems"] = [self.plain(part) for part in node["prefixItems"]]
            if schema.get("unevaluatedItems") is False:
                node.setdefault("items", NOTHING)
        said = [told for keyword in _TOLD if keyword in schema for told in sentence(keyword, schema[keyword])]
        if "if" in schema and ("then" in schema or "else" in schema):
            said += sentence("if", {key: schema[key] for key in ("if", "then", "else") if key in schema})
        if said:
            node[Mark.SAYS] = said
        return _consistent(node)

    def _union(self, options: list[Any], keyword: str) -> Node:
        needed = [_only_requires(option) for option in options]
        if all(needed):
            return {Mark.SAYS: list(sentence(f"{keyword}-required", needed))}
        kept = _distinct([flat for option in options for flat in _flat(self.plain(option))])
        if len(kept) < 2:
            return kept[0] if kept else NOTHING
        return {"anyOf": kept, Mark.ONE: True} if keyword == "oneOf" else {"anyOf": kept}

    def _sealed(self, node: Node, others: Node) -> Node:
        """Say what a node accepts as undeclared members, where it does not say so itself."""
        node = self._expanded(node)
        if "anyOf" in node:
            return {**node, "anyOf": [self._sealed(option, others) for option in node["anyOf"]]}
        is_object = "properties" in node or "object" in types(node)
        return {**node, _OPEN: others} if is_object and _OPEN not in node else node

    def _merge(self, one: Node, other: Node) -> Node:
        """Return what both nodes accept, or more than that with a sentence about the rest."""
        if NOTHING in (one, other):
            return NOTHING
        if one.keys() <= TEXTS or other.keys() <= TEXTS or bare(one) == bare(other):
            return _joined(one, other)
        pair = (named(one), named(other))
        if pair in self._merging and pair != (None, None):
            return _joined(
                one, {**texts_of(other), Mark.SAYS: [*other.get(Mark.SAYS, ()), _FURTHER]}
            )  # recursive on both sides
        self._merges += 1
        self._merging.append(pair)
        if self._merges > _MOST_MERGES or len(self._merging) > _DEEPEST:
            raise TooComplexError
        made = self._common(self._expanded(one), self._expanded(other))
        self._merging.pop()
        return made

    def _common(self, one: Node, other: Node) -> Node:
        if len(one.get("anyOf", ())) * len(other.get("anyOf", ())) > _MOST_OPTIONS:
            return _joined(one, {**texts_of(other), Mark.SAYS: [*other.get(Mark.SAYS, ()), _FURTHER]})
        for union, rest in ((one, other), (other, one)):
            if "anyOf" in union:
                merged = [self._merge(option, bare(rest)) for option in union["anyOf"]]
                if not (kept := _distinct([flat for option in merged for flat in _flat(option)])):
                    return NOTHING
                made: Node = kept[0] if len(kept) == 1 else {**bare(union), "anyOf": kept}
                return _joined(_joined(texts_of(one), texts_of(other)), made)
        return self._both(one, other)

    def _expanded(self, node: Node) -> Node:
        """Replace a reference by its definition, because it is merged with something else."""
        name = named(node)
        return node if name is None else _joined(texts_of(node), self._definition(name))

    def _both(self, one: Node, other: Node) -> Node:
        node = {**other, **one}
        said = [*one.get(Mark.SAYS, ()), *other.get(Mark.SAYS, ())]
        for key in sorted((one.keys() & other.keys()) - TEXTS - _STRUCTURE):
            left, right = one[key], other[key]
            if key in _GREATER or key in _SMALLER:
                node[key] = (max if key in _GREATER else min)(left, right)
            elif key == "type":
                node[key] = _common_types(left, right)
            elif key == "enum":
                known = set(map(_key, right))
                node[key] = [value for value in left if _key(value) in known]
            elif key == "required":
                node[key] = list(dict.fromkeys([*left, *right]))
            elif key == "uniqueItems":
                node[key] = left or right
            elif left != right:
                said += sentence(key, right)
        node |= self._members(one, other) | self._items(one, other)
        if said:
            node[Mark.SAYS] = list(dict.fromkeys(said))
        return _consistent(node)

    def _members(self, one: Node, other: Node) -> Node:
        """Merge properties: each side judges a member by its declaration, else by that of undeclared members."""
        merged: Node = {}
        names = dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())])
        self._merges += len(names)
        if names:
            merged["properties"] = {name: self._merge(_member(one, name), _member(other, name)) for name in names}
        if _OPEN in one and _OPEN in other:
            merged[_OPEN] = self._merge(one[_OPEN], other[_OPEN])
        patterns = {**other.get("patternProperties", {}), **one.get("patternProperties", {})}
        return merged | ({"patternProperties": patterns} if patterns else {})

    def _items(self, one: Node, other: Node) -> Node:
        merged: Node = {}
        if "items" in one and "items" in other:
            merged["items"] = self._merge(one["items"], other["items"])
        if longest := max(len(one.get("prefixItems", ())), len(other.get("prefixItems", ()))):
            merged["prefixItems"] = [self._merge(item_at(one, at), item_at(other, at)) for at in range(longest)]
        return merged


def _consistent(node: Node) -> Node:
    """Return NOTHING for keywords that exclude each other; leave out members that cannot be there."""
    if node.get("type") == [] or node.get("enum") == []:
        return NOTHING
    properties: Node = node.get("properties", {})
    if not (excluded := [name for name, part in properties.items() if part == NOTHING]):
        return node
    if any(name in excluded for name in node.get("required", ())) and types(node) == ["object"]:
        return NOTHING
    return {**node, "properties": {name: part for name, part in properties.items() if part != NOTHING}}


def _member(node: Node, name: str) -> Node:
    properties: dict[str, Node] = node.get("properties", {})
    others: Node = {} if "patternProperties" in node else node.get(_OPEN, {})
    return properties.get(name, others)


def _flat(node: Node) -> list[Node]:
    """Return the alternatives of a union without texts, none for a node that accepts nothing, else the node itself."""
    if node == NOTHING:
        return []
    return node["anyOf"] if node.keys() <= {"anyOf", Mark.ONE} and node else [node]


def _joined(one: Node, other: Node) -> Node:
    """Join nodes of which one has only texts, or both have the same keywords. Texts of the first win."""
    said = list(dict.fromkeys([*one.get(Mark.SAYS, ()), *other.get(Mark.SAYS, ())]))
    return {**other, **one, **({Mark.SAYS: said} if said else {})}


def _distinct(found: list[Node]) -> list[Node]:
    return list({repr(node): node for node in found}.values())


def _only_requires(option: Any) -> list[str]:
    """Return the members that an alternative requires, if it says nothing else."""
    if not isinstance(option, dict) or not option.keys() <= {"required", "type", "title"}:
        return []
    return [*as_texts(option.get("required"))]


def _common_types(one: list[str], other: list[str]) -> list[str]:
    common = [name for name in one if name in other]
    mixed = ("number" in one and "integer" in other) or ("integer" in one and "number" in other)
    return [*common, "integer"] if mixed and not {"number", "integer"} & set(common) else common


def _key(value: Any) -> object:
    """Return what equal JSON values have in common: 1 is 1.0, and True is not 1."""
    return repr(value) if isinstance(value, (dict, list)) else (isinstance(value, bool), value)


def _is_usable(key: str, value: Any) -> bool:
    """Return True if a keyword has a value of its kind; others judge nothing."""
    if key in ("properties", "patternProperties"):
        return isinstance(value, dict)
    if key in ("required", "enum", "prefixItems", "examples"):
        return isinstance(value, list) and bool(value)
    if key in _GREATER or key in _SMALLER or key == "multipleOf":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in ("pattern", "format", "description", "contentEncoding"):
        return isinstance(value, str)
    if key == "type":
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
    return True


_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": (),
    "null": (),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "object": ("properties", "required", _OPEN, "patternProperties", "minProperties", "maxProperties"),
}
_IMPLYING: Final = ("object", "array")  # if none is named; a minimum alone accepts texts too


def with_single_types(document: ToolSchema) -> ToolSchema:
    """Give every node one type, or none if it accepts everything."""
    return ToolSchema(_single(document.root), {name: _single(node) for name, node in document.definitions.items()})


def _single(node: Node) -> Node:
    node = with_children(_settled(node), _single)
    texts = texts_of(node)
    if node == NOTHING:
        return {Mark.SAYS: ["No value is accepted here."], Mark.UNFIT: "no value is accepted"}
    if "anyOf" in node:
        # The alternatives of unions inside a union are taken into it, if they have no texts of their own.
        inside = (option["anyOf"] if option.keys() == {"anyOf"} else [option] for option in node["anyOf"])
        return {**node, "anyOf": _distinct(list(chain.from_iterable(inside)))}
    if "$ref" in node:
        return node
    if "enum" in node:
        return _united(_enumerations(node), texts)
    implied = [name for name in _IMPLYING if not node.keys().isdisjoint(_KEYWORDS[name])]
    names = [name for name in types(node) if name in _KEYWORDS] or implied
    if not names:
        said = [told for key in sorted(node.keys() - TEXTS - {"type"}) for told in sentence(key, node[key])]
        texts = {**texts, Mark.SAYS: [*texts.get(Mark.SAYS, ()), *said]} if said else texts
    kept = [{"type": name, **{key: node[key] for key in _KEYWORDS[name] if key in node}} for name in names]
    return _united(kept, texts)


def _settled(node: Node) -> Node:
    """Replace parts that accept nothing by what that means for the node around them."""
    made = dict(node)
    if made.get("additionalProperties") == NOTHING:
        made["additionalProperties"] = False
    if "patternProperties" in made:
        kept = {key: part for key, part in made.pop("patternProperties").items() if part != NOTHING}
        made |= {"patternProperties": kept} if kept else {}
    first: list[Node] = made.get("prefixItems", [])
    if (ends := next((at for at, part in enumerate(first) if part == NOTHING), None)) is not None:
        made["prefixItems"] = first = first[:ends]
        made["items"] = NOTHING
    if made.get("items") == NOTHING:
        del made["items"]
        made["maxItems"] = min(made.get("maxItems", len(first)), len(first))
    if not first:
        made.pop("prefixItems", None)
    return made


def _united(options: list[Node], texts: Node) -> Node:
    if len(options) == 1:
        said = [*texts.get(Mark.SAYS, ()), *options[0].get(Mark.SAYS, ())]
        return {**options[0], **texts, **({Mark.SAYS: said} if said else {})}
    return {"anyOf": options, **texts} if options else texts


def _enumerations(node: Node) -> list[Node]:
    """Return listed values by type. Values that are lists or objects are only described."""
    groups: dict[str, list[Any]] = {}
    allowed = types(node)
    for value in node["enum"]:
        kind = _kind(value)
        if not allowed or kind in allowed or (kind == "integer" and "number" in allowed):
            groups.setdefault(kind, []).append(value)
    if "number" in groups and "integer" in groups:
        groups["number"] = [value for value in node["enum"] if _kind(value) in ("integer", "number")]
        del groups["integer"]
    return [_enumeration(kind, values) for kind, values in groups.items()]


def _enumeration(kind: str, values: list[Any]) -> Node:
    if kind in ("array", "object"):
        return {"type": kind, Mark.SAYS: list(sentence("enum", values))}
    if kind == "null" or (kind == "boolean" and len(set(values)) > 1):
        return {"type": kind}
    return {"type": kind, "enum": list(dict.fromkeys(values))}


def _kind(value: Any) -> str:
    return "integer" if isinstance(value, float) and value.is_integer() else json_type(value)
