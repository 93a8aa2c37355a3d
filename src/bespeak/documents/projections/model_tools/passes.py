"""A tool's schema in work: a root, its definitions, and passes over them, of which each provider needs some.

Nodes are never changed in place, because several places may share one. Definitions may contain themselves. What a
schema no longer says becomes a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from bespeak.contract.schema.subschemas import children, with_children
from bespeak.contract.schema.view import SchemaView, overlaps
from bespeak.text.identifiers import reached

Node = dict[str, Any]
Definitions = Mapping[str, Node]
Pass = Callable[[Node, Definitions], Node]  # from a node whose children are done to the one in its place

PLACE: Final = "#/$defs/"


class Mark:
    """Keys that passes leave in nodes."""

    SAYS: Final = "~says"  # sentences about what the schema no longer says
    OPTIONAL: Final = "~optional"  # of an object: members that were left out if they are null
    REST: Final = "~rest"  # of an object: the member that holds undeclared members as pairs of key and value
    MAP: Final = "~map"  # of a list: pairs of key and value that are the members of an object
    RENAMED: Final = "~renamed"  # of an object: pairs of a member's name and its original name
    WRAPPED: Final = "~wrapped"  # of an object: the member that holds the value itself
    ONE: Final = "~one"  # of a union: a value may meet one of the alternatives only
    UNFIT: Final = "~unfit"  # why a value of the original schema may not be expressible here


CHANGING: Final = frozenset(
    {Mark.OPTIONAL, Mark.REST, Mark.MAP, Mark.RENAMED, Mark.WRAPPED}
)  # nodes whose values are converted back

TEXTS: Final = frozenset({"description", "default", "examples", "deprecated", Mark.SAYS, Mark.UNFIT})  # judge no value
NOTHING: Final[Node] = {"not": {}}  # the schema that no value meets


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A schema and its definitions. Every `$ref` is the name of a definition after `#/$defs/`."""

    root: Node
    definitions: Definitions

    def apply(self, step: Pass) -> ToolSchema:
        """Apply a pass to every node, children first."""
        done = {name: applied(step, node, self.definitions) for name, node in self.definitions.items()}
        return ToolSchema(applied(step, self.root, self.definitions), done)

    def pruned(self) -> ToolSchema:
        """Leave out definitions that nothing refers to."""
        used = reached(_targets(self.root), lambda name: _targets(self.definitions[name]))
        return ToolSchema(self.root, {name: node for name, node in self.definitions.items() if name in used})

    def schema(self) -> Node:
        plain = _unmarked(self.root)
        if self.definitions:
            plain["$defs"] = {name: _unmarked(node) for name, node in self.definitions.items()}
        return plain


def applied(step: Pass, node: Node, definitions: Definitions) -> Node:
    """Apply a pass to a node and all below it, children first."""
    return step(with_children(node, lambda part: applied(step, part, definitions)), definitions)


def texts_of(node: Node) -> Node:
    return {key: value for key, value in node.items() if key in TEXTS}


def bare(node: Node) -> Node:
    return {key: value for key, value in node.items() if key not in TEXTS}


def named(node: Node) -> str | None:
    """Return the name of the definition that a node refers to."""
    reference = node.get("$ref")
    return reference.removeprefix(PLACE) if isinstance(reference, str) else None


def resolved(node: Node, definitions: Definitions) -> Node:
    """Follow the reference of a node. Definitions are not references themselves."""
    name = named(node)
    return node if name is None else definitions[name]


def view(node: Node, definitions: Definitions) -> SchemaView:
    return SchemaView(node, {"$defs": definitions})


def is_nullable(node: Node, definitions: Definitions) -> bool:
    found = view(node, definitions).types
    return not found or "null" in found


def types(node: Mapping[str, Any]) -> list[str]:
    """Return the types that a node names; none if it accepts all."""
    named_types = node.get("type", [])
    return [named_types] if isinstance(named_types, str) else named_types


def item_at(node: Node, at: int) -> Node:
    first: list[Node] = node.get("prefixItems", [])
    others: Node = node.get("items", {})
    return first[at] if at < len(first) else others


def nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all below it, without following references."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children(node)


def _unmarked(node: Node) -> Node:
    return with_children({key: value for key, value in node.items() if not key.startswith("~")}, _unmarked)


def circular(definitions: Definitions) -> frozenset[str]:
    """Return the names of definitions on a circle of references, and of those between two circles."""
    return frozenset(_trimmed(_trimmed({name: _targets(node) for name, node in definitions.items()})))


def _targets(node: Node) -> set[str]:
    return {target for target in map(named, nodes(node)) if target}


def open_unions(document: ToolSchema) -> ToolSchema:
    """Replace alternatives that lead back to their own union by its alternatives: a value gets no smaller that way."""
    definitions = document.definitions
    leads = {
        name: {target for target in map(named, node.get("anyOf", ())) if target and "anyOf" in definitions[target]}
        for name, node in definitions.items()
    }
    made = {name: {**definitions[name], "anyOf": _options(name, definitions)} for name in _trimmed(_trimmed(leads))}
    return ToolSchema(document.root, {**definitions, **made})


def _options(name: str, definitions: Definitions) -> list[Node]:
    """Return the alternatives of a union, and of the unions among them, once each."""
    seen, found, waiting = {name}, [], list(reversed(definitions[name]["anyOf"]))
    while waiting:
        option = waiting.pop()
        target = named(option)
        if target is None or "anyOf" not in definitions[target]:
            found.append(option)
        elif target not in seen:
            seen.add(target)
            waiting += reversed(definitions[target]["anyOf"])
    return found or [{}]


def relax_circles(document: ToolSchema) -> ToolSchema:
    """Make members optional through which a definition contains itself: Gemini unrolls circles only there."""
    names = circular(document.definitions)

    def relaxed(node: Node, _: Definitions) -> Node:
        parts = [(name, node["properties"].get(name, {})) for name in node.get("required", ())]
        needed = [name for name, part in parts if any(named(each) in names for each in nodes(part))]
        if not needed:
            return node
        left = [name for name in node["required"] if name not in needed]
        return {**node, "required": left, Mark.SAYS: [*node.get(Mark.SAYS, ()), f"Always give {' and '.join(needed)}."]}

    circles = ToolSchema({}, {name: document.definitions[name] for name in names}).apply(relaxed)
    return ToolSchema(document.root, {**document.definitions, **circles.definitions})


def _trimmed(leads: dict[str, set[str]]) -> dict[str, set[str]]:
    """Remove, again and again, what leads nowhere; return the rest with all references turned round."""
    back: dict[str, set[str]] = {name: set() for name in leads}
    for name, targets in leads.items():
        for target in targets:
            back[target].add(name)
    open_ends = {name: len(targets) for name, targets in leads.items()}
    waiting = [name for name, count in open_ends.items() if not count]
    while waiting:
        for name in back.pop(waiting.pop()):
            open_ends[name] -= 1
            if not open_ends[name]:
                waiting.append(name)
    return {name: {source for source in sources if source in back} for name, sources in back.items()}


_LONGEST_SENTENCE: Final = 200  # maximum characters of a value in a sentence

_SIMPLE: Final[Mapping[str, str]] = {
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "pattern": "It matches the pattern {}",
    "format": "Format: {}.",
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "exclusiveMinimum": "More than {}.",
    "exclusiveMaximum": "Less than {}.",
    "multipleOf": "A multiple of {}.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "minProperties": "At least {} members.",
    "maxProperties": "At most {} members.",
    "contentEncoding": "Encoded as {}.",
    "contentMediaType": "Media type: {}.",
    "default": "Default: {}.",
    "const": "Always {}.",
}
_NUMERIC: Final = ("int32", "int64", "float", "double", "int8", "int16", "uint8", "uint16", "uint32", "uint64")


def sentence(keyword: str, value: Any) -> Iterator[str]:
    """Yield the sentences that say what a keyword says."""
    if keyword in _SIMPLE:
        if (keyword, value) != ("default", None) and (keyword != "format" or value not in _NUMERIC):
            said = value[:_LONGEST_SENTENCE] if isinstance(value, str) else _quoted(value)
            text = _SIMPLE[keyword].format(said)
            yield text.replace("s.", ".") if value == 1 and value is not True else text
    elif keyword in _WRITERS:
        yield from _WRITERS[keyword](value)
    else:
        yield f"It also meets this JSON Schema: {_quoted({keyword: value})}."


def _dependent(needs: Any) -> Iterator[str]:
    for name, needed in needs.items() if isinstance(needs, Mapping) else ():
        if isinstance(needed, list) and needed:
            yield f"If {name} is given, so is {' and '.join(map(str, needed))}."


def _choices(choices: list[list[str]]) -> str:
    return f"one of these must be given: {'; '.join(' and '.join(names) for names in choices)}."


_WRITERS: Final[Mapping[str, Callable[[Any], Iterable[str]]]] = {
    "enum": lambda values: [f"One of: {', '.join(map(_quoted, values[:20]))}{', ...' if len(values) > 20 else ''}."],
    "uniqueItems": lambda unique: ["No item twice."] if unique else [],
    "examples": lambda examples: [f"Example: {_quoted(examples[0])}."] if examples else [],
    "deprecated": lambda deprecated: ["Deprecated."] if deprecated is True else [],
    "dependentRequired": _dependent,
    "anyOf-required": lambda choices: [f"At least {_choices(choices)}"],
    "oneOf-required": lambda choices: [f"Exactly {_choices(choices)}"],
    "oneOf": lambda _: ["Exactly one of the alternatives may fit."],
}


def _quoted(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)[:_LONGEST_SENTENCE]
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[:_LONGEST_SENTENCE]}..."


_NULL: Final = {"type": "null"}


def note_optional(node: Node, definitions: Definitions) -> Node:
    """Mark optional members that are never null: models send null all the same, and mean that it is left out."""
    return _marked(node, [name for name in _optional(node) if not is_nullable(node["properties"][name], definitions)])


def require_all(node: Node, definitions: Definitions) -> Node:
    """Require all members and let optional ones be null.

    If null is a value of an optional member, it can stand for a missing member only if that is its default.
    """
    if node.get("type") != "object":
        return node
    properties = dict(node.get("properties", {}))
    for name in _optional(node):
        part = properties[name]
        if not is_nullable(part, definitions):
            properties[name] = _or_null(part)
        elif part.get("default", False) is not None and part.keys() - TEXTS:
            properties[name] = {**part, Mark.UNFIT: "null is a value, so it cannot stand for a missing member"}
    return _marked({**node, "properties": properties, "required": list(properties)}, _optional(node))


def join_null(node: Node, _: Definitions) -> Node:
    """Turn the union of null and one scalar type into a list of types: shorter, and what models have seen most."""
    options = node.get("anyOf", ())
    if len(options) != 2 or _NULL not in options or node.keys() - TEXTS != {"anyOf"}:
        return node
    (other,) = [option for option in options if option != _NULL] or [_NULL]
    if other.get("type") not in ("string", "integer", "number", "boolean") or "enum" in other:
        return node
    texts = {key: value for key, value in node.items() if key != "anyOf"}
    return {**other, "type": [other["type"], "null"], **texts}


def _optional(node: Node) -> list[str]:
    required = set(node.get("required", ()))
    return [name for name in node.get("properties", ()) if name not in required]


def _marked(node: Node, names: list[str]) -> Node:
    return {**node, Mark.OPTIONAL: names} if names else node


def _or_null(node: Node) -> Node:
    """Return the union of a node and null; texts are those of the union."""
    own, texts = bare(node), texts_of(node)
    options = own.pop("anyOf", None)
    return {"anyOf": [own, _NULL], **texts} if options is None else {**own, "anyOf": [*options, _NULL], **texts}


_PAIRS: Final = "Pairs of key and value, one for each member."


def list_members(node: Node, _: Definitions) -> Node:
    """Turn an object with undeclared members into a list of pairs, or its undeclared members if others are declared.

    An object that does not say whether it has undeclared members has none, unless it declares none at all.
    """
    if node.get("type") != "object":
        return node
    if (value := _value(node)) is None:
        return node
    if not value:
        return {**node, Mark.UNFIT: "an object takes members of any kind"}
    made = {key: part for key, part in node.items() if key not in ("additionalProperties", "patternProperties")}
    pair = {"type": "object", "properties": {"key": {"type": "string"}, "value": value}, "required": ["key", "value"]}
    pairs = {"type": "array", "items": {**pair, "additionalProperties": False}, Mark.SAYS: [_PAIRS, *_keys(node)]}
    if "properties" not in node:
        counts = {"minProperties": "minItems", "maxProperties": "maxItems"}
        limits = {new: node[old] for old, new in counts.items() if old in node}
        texts = {key: part for key, part in made.items() if key not in ("type", "required", *counts)}
        return {**texts, **pairs, **limits, Mark.MAP: True, Mark.SAYS: [*node.get(Mark.SAYS, ()), *pairs[Mark.SAYS]]}
    name = "other_members"
    while name in made["properties"]:
        name += "_"
    made["properties"] = {**made["properties"], name: pairs}
    made["required"] = [*made.get("required", ()), name]
    return {**made, Mark.REST: name}


def without_patterns(node: Node, _: Definitions) -> Node:
    """Describe members whose names match a pattern as undeclared members."""
    if "patternProperties" not in node:
        return node
    made = {key: part for key, part in node.items() if key != "patternProperties"}
    return {**made, "additionalProperties": _value(node), Mark.SAYS: [*node.get(Mark.SAYS, ()), *_keys(node)]}


def _value(node: Node) -> Node | None:
    """Return the schema of undeclared members, an empty one if they may be anything; None if there are none."""
    others, patterns = node.get("additionalProperties"), node.get("patternProperties", {})
    if others is None:
        others = False if node.get("properties") or patterns else {}
    options = [*patterns.values(), *([] if others is False else [others])]
    if not options:
        return None
    if {} in options:
        return {}
    return options[0] if len(options) == 1 else {"anyOf": options}


def _keys(node: Node) -> list[str]:
    patterns = node.get("patternProperties")
    return [f"Keys match {' or '.join(patterns)}."] if patterns and node.get("additionalProperties") is False else []


def describe_items(node: Node, _: Definitions) -> Node:
    """Give every list a schema of its items, which providers demand."""
    return {**node, "items": {}} if node.get("type") == "array" and not {"items", "prefixItems"} & node.keys() else node


def join_positions(node: Node, definitions: Definitions) -> Node:
    """Replace the schemas of positions by one union and a sentence."""
    first: list[Node] = node.get("prefixItems", [])
    if not first:
        return describe_items(node, definitions)
    made = {key: value for key, value in node.items() if key != "prefixItems"}
    is_closed = node.get("maxItems", len(first) + 1) <= len(first)
    options = [*first, *([] if is_closed else [node.get("items", {})])]
    distinct = list({repr(option): option for option in options}.values())
    made["items"] = distinct[0] if len(distinct) == 1 else {} if {} in distinct else {"anyOf": distinct}
    order = ", ".join(_words(option, definitions) for option in first)
    return {**made, Mark.SAYS: [*node.get(Mark.SAYS, ()), f"The items are, in this order: {order}."]}


def _words(node: Node, definitions: Definitions) -> str:
    options = view(node, definitions).alternatives
    kinds = dict.fromkeys(kind for each in options for kind in types(each.keywords) or ("any value",))
    said = node.get("description")
    name = " or ".join(kinds)
    return f"{name} ({said.rstrip('.')})" if isinstance(said, str) and len(said) < 80 else name


_LARGEST: Final = 100  # maximum nodes of a definition that is copied to where it is used
_NESTING: Final = frozenset({"$ref", "anyOf", "properties", "items", "prefixItems", "additionalProperties"})


def inline_leaves(node: Node, definitions: Definitions) -> Node:
    """Replace a reference to a definition without parts by the definition: a name for it costs more than it saves."""
    name = named(node)
    if name is None or not _NESTING.isdisjoint(definitions[name]):
        return node
    return {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}


def wrap_described(node: Node, _: Definitions) -> Node:
    """Put a reference that has a description into a union of one, beside which a description is allowed."""
    if "$ref" not in node or len(node) == 1:
        return node
    return {"anyOf": [{"$ref": node["$ref"]}], **{key: value for key, value in node.items() if key != "$ref"}}


def inline_described(document: ToolSchema) -> ToolSchema:
    """Copy definitions to where they have a description of their own; leave out that of a large or recursive one."""
    circles = circular(document.definitions)
    done: dict[str, Node] = {}

    def inlined(node: Node, definitions: Definitions) -> Node:
        name = named(node)
        if name is None or len(node) == 1:
            return node
        if name in circles or not _is_small(name, definitions):
            return {"$ref": node["$ref"]}
        if name not in done:
            done[name] = applied(inlined, definitions[name], definitions)
        return {**done[name], **{key: value for key, value in node.items() if key != "$ref"}}

    return document.apply(inlined)


def _is_small(name: str, definitions: Definitions) -> bool:
    waiting, count = [definitions[name]], 0
    while waiting and count <= _LARGEST:
        for node in islice(nodes(waiting.pop()), _LARGEST + 1):
            count += 1
            if (target := named(node)) is not None:
                waiting.append(definitions[target])
    return count <= _LARGEST


def mark_ambiguous(document: ToolSchema) -> ToolSchema:
    """Mark unions in which a value does not tell by which alternative it has to be converted back."""
    changing = _changing(document.definitions)
    around = view({}, document.definitions)  # shared, so that the work for all unions is bounded

    def marked(node: Node, _: Definitions) -> Node:
        options = node.get("anyOf", [])
        if not any(_changes(option, changing) for option in options):
            return node
        if len({_plan(option, changing) for option in options}) == 1:
            return node
        pairs = overlaps(options, around, closed=True)
        clear = all(_plan(one, changing) == _plan(other, changing) for one, other in pairs)
        return node if clear else {**node, Mark.UNFIT: "alternatives that are written alike mean different values"}

    return document.apply(marked)


def _changes(node: Node, changing: frozenset[str]) -> bool:
    return any(not CHANGING.isdisjoint(each) or named(each) in changing for each in nodes(node))


def _changing(definitions: Definitions) -> frozenset[str]:
    """Return the definitions with values that have to be converted back, here or below."""
    users: dict[str, list[str]] = {name: [] for name in definitions}
    for name, node in definitions.items():
        for target in _targets(node):
            users[target].append(name)
    changing = (name for name, node in definitions.items() if _changes(node, frozenset()))
    return frozenset(reached(changing, users.__getitem__))


def _plan(node: Node, changing: frozenset[str]) -> Any:
    """Return how values are converted back: equal for nodes that do it alike, None for those that change nothing."""
    if "$ref" in node:
        return node["$ref"] if named(node) in changing else None
    marks = tuple((mark, repr(node[mark])) for mark in sorted(CHANGING & node.keys()))
    parts = [*node.get("properties", {}).items()]
    parts += [(key, node[key]) for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
    below = tuple((name, plan) for name, part in parts if (plan := _plan(part, changing)) is not None)
    options = tuple(_plan(option, changing) for option in node.get("anyOf", ()))
    return (marks, below, options) if marks or below or any(options) else None


Keeps = Callable[[str, Any], bool]  # decides whether a provider supports a keyword with a value

_WORDED: Final = (
    *("enum", "minLength", "maxLength", "pattern", "format", "contentEncoding", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties"),
    *("maxProperties", "default", "examples", "deprecated"),
)
_LONGEST: Final = 2_000  # maximum characters of a description inside a schema


def wording(keeps: Keeps) -> Pass:
    """Return the pass that puts keywords which are not kept, and other sentences, into descriptions."""

    def worded(node: Node, definitions: Definitions) -> Node:
        told = [key for key in _WORDED if key in node and not keeps(key, node[key])]
        said = list(node.get(Mark.SAYS, ()))
        if node.get(Mark.ONE) and any(overlaps(node.get("anyOf", []), {"$defs": definitions}, closed=True)):
            said += sentence("oneOf", True)
        said += [text for key in told for text in sentence(key, node[key])]
        made = {key: value for key, value in node.items() if key not in told and key != Mark.SAYS}
        if not said:
            return made
        own = made.get("description", "").strip()
        if own and own[-1] not in ".!?:":
            own += "."
        return {**made, "description": " ".join(filter(None, [own, *dict.fromkeys(said)]))[:_LONGEST]}

    return worded


_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST_ROOT: Final = 64


def with_root_object(document: ToolSchema, names: re.Pattern[str]) -> ToolSchema:
    """Make the root a plain object whose members have names that match a pattern.

    A union is wrapped as the only member of an object. An argument that is not declared is a mistake, as for MCP.
    """
    root = {**resolved(document.root, document.definitions)}
    if not any("type" in option.keywords for option in view(root, document.definitions).alternatives):
        root = {key: value for key, value in root.items() if key != "anyOf"} | {"type": "object"}
    if root.get("type") != "object":
        name = "input"
        wrapped = {"type": "object", "properties": {name: root}, "required": [name], Mark.WRAPPED: name}
        return ToolSchema({**wrapped, "additionalProperties": False}, document.definitions)
    root.setdefault("properties", {})
    if "additionalProperties" not in root and "patternProperties" not in root:
        root["additionalProperties"] = False
    return ToolSchema(_renamed(root, names), document.definitions)


def _renamed(root: Node, names: re.Pattern[str]) -> Node:
    """Rename members that a provider refuses: `$top` becomes `top`, `filter[name]` becomes `filter_name`."""
    properties: Node = root["properties"]
    taken = {name for name in properties if names.fullmatch(name)}
    if len(taken) == len(properties):
        return root
    new: dict[str, str] = {}
    for name in properties:
        new[name] = name if name in taken else _free(_OTHER.sub("_", name).strip("_"), taken, names)
        taken.add(new[name])
    return {
        **root,
        "properties": {new[name]: part for name, part in properties.items()},
        "required": [new.get(name, name) for name in root.get("required", ())],
        Mark.RENAMED: [[short, name] for name, short in new.items() if short != name],
    }


def _free(plain: str, taken: set[str], names: re.Pattern[str]) -> str:
    plain = (plain if names.fullmatch(plain[:_LONGEST_ROOT]) else f"arg_{plain}")[:_LONGEST_ROOT].rstrip("_") or "arg"
    number, name = 1, plain
    while name in taken:
        number += 1
        name = f"{plain[: _LONGEST_ROOT - 6]}_{number}"
    return name
