"""Texts and schemas of an upstream, made safe for a contract.

Texts become plain and short, and end before the first sentence that instructs a model: what follows may depend on it.
A constraint that has to be dropped is dropped by accepting more, never by refusing what the upstream accepts.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.schema.safety import find_hazards, needs_backtracking, slowness
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, children, nodes, rewrite, with_children
from bespeak.contract.schema.validation import compile_schema
from bespeak.contract.service import Service
from bespeak.documents.adoption.facade import LeftOut
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.identifiers import reached, unused
from bespeak.text.language.injection import blob, instruction, may_inject, role_marker, visible
from bespeak.text.source.pointer import child, unescaped
from bespeak.text.source.shorthand import KEYWORDS

DEFINITIONS: Final = "#/$defs/"  # prefix of a reference to a definition


def names_in(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the definitions that a schema refers to, nearest first."""
    found = [(len(at), node["$ref"]) for at, node in nodes(schema) if isinstance(node.get("$ref"), str)]
    found.reverse()  # the walk visits the last entry first
    ordered = (reference.removeprefix(DEFINITIONS) for _, reference in sorted(found, key=lambda one: one[0]))
    return tuple(dict.fromkeys(unescaped(name.partition("/")[0]) for name in ordered))


@dataclass(slots=True)
class Definitions:
    """The definitions that the parts of one schema refer to."""

    found: dict[str, Any] = field(default_factory=dict)

    def adopt(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema without its own definitions, which are added to the collected ones."""
        bare = {key: value for key, value in schema.items() if key != "$defs"}
        own = schema.get("$defs")
        if not isinstance(own, Mapping) or not own:
            return bare
        names = {}
        for name, part in own.items():
            known = self.found.get(name, part)
            names[name] = name if known is part or known == part else unused(name, self.found)
        moved = {name: new for name, new in names.items() if name != new}
        for name, part in own.items():
            self.found[names[name]] = _renamed(part, moved) if moved else part
        renamed: dict[str, Any] = _renamed(bare, moved) if moved else bare
        return renamed


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    def change(reference: str) -> str:
        if not reference.startswith(DEFINITIONS):
            return reference
        first, slash, rest = reference.removeprefix(DEFINITIONS).partition("/")
        name = names.get(unescaped(first))
        return reference if name is None else f"#{child('/$defs', name)}{slash}{rest}"

    return rewrite(part, change)


_COMMENT: Final = re.compile(r"<!--.{0,4000}?(?:-->|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
_ADDRESS: Final = re.compile(r"<?\b(?:https?|ftp)://[^\s<>()]{0,500}>?")
_MARKS: Final = re.compile(r"[`*]{1,3}|^#{1,6} ", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?])\s")
_HEADING: Final = re.compile(r"^#{1,6} [^\n]*+", re.MULTILINE)
_SEEN: Final = 20_000  # number of characters that are examined
_NEVER: Final = re.compile("[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class PlainText(NamedTuple):
    """A text and the reason why something was removed from it; removed markup and length need no reason."""

    text: str
    fault: str = ""


@lru_cache(maxsize=8192)
def plain_text(text: str, most: int = 500, *, field: bool = False) -> PlainText:
    """Return a text on one line, without markup and instructions to a model, cut at the end of a sentence.

    `field` means the text of a field of a schema, whose commands are addressed to the caller.
    """
    seen = _NEVER.sub("", text[:_SEEN])
    clean = visible(seen)
    fault = "invisible characters" if clean is not None else ""
    # Names of parameters in backticks and markup that hides text count, so instructions are found before both go.
    seen, spoken = _until_instruction(seen if clean is None else clean, field=field)
    seen = _TAG.sub(" ", _LINK.sub(r"\1", _COMMENT.sub(" ", seen)))
    seen = html.unescape(seen) if "&" in seen else seen
    seen, hidden = _until_instruction(" ".join(_MARKS.sub("", seen).split()), field=field)
    fault = spoken or hidden or fault
    coded = blob(seen)
    while coded is not None:
        seen, fault = " ".join(seen.replace(coded, "").split()), fault or "something encoded"
        coded = blob(seen)
    return PlainText(_cut(seen, most), fault)


def _until_instruction(text: str, *, field: bool) -> tuple[str, str]:
    """Return a text up to the first instruction to a model, and the reason if it ends there."""
    if not may_inject(text):
        return text, ""
    found = instruction(text, field=field)
    if (marker := role_marker(text, strict=False)) is not None:
        at = max(text.lower().find(marker), 0)
        if found is None or at <= found.start:
            return text[:at].rstrip(), f"a text that {found.kind}" if found else "a text with a speaker label"
    return (text, "") if found is None else (text[: found.start].rstrip(), f"a text that {found.kind}")


def first_sentence(text: str, most: int = 300) -> str:
    """Return the first sentence of a text without URLs and its full stop."""
    said = _HEADING.sub("", text[:_SEEN])
    plain = " ".join(_ADDRESS.sub("", plain_text(said if said.strip() else text, 2_000).text).split())
    return _cut(_END.split(plain, maxsplit=1)[0], most).rstrip(" .!:;,").strip()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = text[:most]
    stop = max(head.rfind(". "), head.rfind("! "), head.rfind("? "))
    return head[: stop + 1] if stop > most // 3 else head[: max(head.rfind(" "), most // 2)].rstrip(" ,;:")


_DROPPED: Final = frozenset(  # keywords that are useless here or change the meaning of references
    {
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"),
        *("$comment", "$vocabulary", "example", "examples", "xml", "externalDocs", "discriminator", "nullable"),
    }
)
_SHORTEST: Final = 12  # characters from which a name or a value can be an instruction
_LONGEST_TEXT: Final = 4_000  # maximum characters of a text that stays as it is
_DEEPEST: Final = 36  # maximum depth of a schema; lint warns beyond 40
_MOST_PARTS: Final = 1_500  # maximum number of parts in a schema that agents are shown
_LARGEST: Final = 2**63 - 1
_CUTS: Final = (24, 12, 8, 5, 3, 1)  # depths at which an unusable schema is cut, the deepest first
_NOTHING: Final = object()
_JUDGED: Final = KEYWORDS - {"default", "enum", "const", "required", "pattern", "format", "dependentRequired", "$ref"}
"""Keywords whose values are texts, schemas or numbers; the strings of all others are judged as they are."""


class SchemaFitter:
    """Fits schemas and caches their parts: a description often repeats them."""

    def __init__(self, *, verbatim: bool = False) -> None:
        """Create a fitter. With `verbatim`, safe texts and unknown keywords stay as they are."""
        self._verbatim = verbatim
        self._clean: dict[int, tuple[object, Any]] = {}
        self._losses: dict[int, tuple[str, ...]] = {}

    def clean(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the schema in terms of TOML, and the losses. The result shares parts: it must not be changed."""
        lost: dict[str, None] = {}
        clean: dict[str, Any] = self._part(schema, lost, 0)
        return clean, tuple(lost)

    def _part(self, value: Any, lost: dict[str, None], depth: int) -> Any:
        if not isinstance(value, Mapping):
            return value
        if (known := self._clean.get(id(value))) is not None:
            lost.update(dict.fromkeys(self._losses[id(value)]))
            return known[1]
        if depth > _DEEPEST:
            lost["parts that are too deep"] = None
            return {}
        own: dict[str, None] = {}
        clean = self._object(value, own, depth)
        # The part itself is stored too, so that no other object gets its id.
        self._clean[id(value)] = (value, clean)
        self._losses[id(value)] = tuple(own)
        lost.update(own)
        return clean

    def _object(self, node: Mapping[str, Any], lost: dict[str, None], depth: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, given in node.items():
            value = given
            expressible = key in KEYWORDS or (self._verbatim and _is_sayable(key) and _has_no_null(value))
            if key in _DROPPED or not expressible:
                continue
            if key not in _JUDGED and (spoken := instruction_in(value if key in KEYWORDS else [key, value])):
                lost[spoken] = None
                value = [name for name in value if not instruction_in(name)] if key == "required" else None
                if not value:
                    continue
            kept = self._value(key, value, lost, depth)
            if kept is not _NOTHING:
                clean[key] = kept
        return _without_null(clean)

    def _value(self, key: str, value: Any, lost: dict[str, None], depth: int) -> Any:
        if key in {"title", "description"}:
            return _text(value, lost, verbatim=self._verbatim)
        if key not in KEYWORDS:
            return value
        if key in DATA_KEYWORDS:
            return _data(key, value, lost)
        if key == "pattern":
            return _pattern(value, lost)
        if key in NAMING_KEYWORDS and isinstance(value, Mapping):
            return self._named(key, value, lost, depth)
        if key == "dependentRequired":  # names on both sides, no schemas
            return value if isinstance(value, Mapping) and _has_no_null(value) else _NOTHING
        if isinstance(value, list):
            return [self._part(item, lost, depth + 2) for item in value if isinstance(item, Mapping | str | bool)]
        if isinstance(value, Mapping):
            return self._part(value, lost, depth + 1)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return _NOTHING
        return value if not _is_large(value) else float(value)

    def _named(self, key: str, value: Mapping[str, Any], lost: dict[str, None], depth: int) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for name, part in value.items():
            if not _is_sayable(name):
                lost["a name that is not a string"] = None
            elif spoken := instruction_in(name):
                lost[f"a name for {spoken}"] = None
            elif key == "patternProperties" and _pattern(name, lost) is _NOTHING:
                continue
            elif isinstance(part, Mapping | bool):
                named[name] = self._part(part, lost, depth + 2)
        return named


def bound(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Cut a clean schema until it has an acceptable size, compiles and has no traps."""
    lost: dict[str, None] = {}
    if (depth := _depth_within(schema, _MOST_PARTS)) is not None:
        lost[f"parts deeper than {depth} levels"] = None
        schema = _cut_schema(schema, depth)
    return _usable(schema, lost), tuple(lost)


def _text(value: Any, lost: dict[str, None], *, verbatim: bool) -> Any:
    if not isinstance(value, str):
        return _NOTHING
    plain = plain_text(value, 300, field=True)
    if plain.fault:
        lost[plain.fault] = None
    elif verbatim and len(value) <= _LONGEST_TEXT and _is_sayable(value):
        return value
    return plain.text or _NOTHING


def instruction_in(value: Any) -> str:
    """Return what names or values tell a model to do; empty if they tell nothing."""
    texts = (part[:_LONGEST_TEXT] for part in parts_of(value) if isinstance(part, str) and len(part) > _SHORTEST)
    found = next(filter(None, (instruction(text, field=True) for text in texts)), None)
    return f"a text that {found.kind}" if found is not None else ""


def _data(key: str, value: Any, lost: dict[str, None]) -> Any:
    if key == "enum" and isinstance(value, list) and len(value) > 900:
        lost[f"a list of {len(value)} values"] = None
        return _NOTHING
    if key == "enum":
        return value if isinstance(value, list) and value else _NOTHING
    # An annotation that TOML cannot express, such as null, is not worth keeping.
    return value if key == "const" or _has_no_null(value) else _NOTHING


def _pattern(value: Any, lost: dict[str, None]) -> Any:
    if not isinstance(value, str):
        return _NOTHING
    usable = _is_sayable(value) and slowness(value) is None and not needs_backtracking(value)
    if not usable or isinstance(compile_schema({"pattern": value}), Fault):
        lost[f"the pattern {value[:60]!r}, which not every engine can check"] = None
        return _NOTHING
    return value


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Remove null, which TOML lacks: `enum: [a, null]` becomes an enum beside a type."""
    if "const" in node and not _has_no_null(node["const"]):
        rest = {key: value for key, value in node.items() if key != "const"}
        node = {**rest, "type": "null"} if node["const"] is None else rest
    values = node.get("enum")
    if not isinstance(values, list) or _has_no_null(values):
        return node
    rest = {key: value for key, value in node.items() if key not in ("enum", "type")}
    kept = [value for value in values if _has_no_null(value)]
    if len(kept) < len(values) - 1:  # a null somewhere inside a value
        return rest
    return {**rest, "anyOf": [{"enum": kept}, {"type": "null"}]} if kept else {**rest, "type": "null"}


def _has_no_null(value: Any) -> bool:
    for part in parts_of(value):
        if part is None or _is_large(part) or (isinstance(part, float) and not math.isfinite(part)):
            return False
        if isinstance(part, str) and not _is_sayable(part):
            return False
    return True


def parts_of(value: Any) -> Iterator[Any]:
    """Yield a value and all names and values in it. A loop: depth costs memory, not frames."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Mapping):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST


def _is_sayable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _usable(schema: dict[str, Any], lost: dict[str, None]) -> dict[str, Any]:
    """Cut the schema until it compiles and has no traps."""
    for depth in _CUTS:
        if (fault := _fault(schema)) is None:
            return schema
        lost[f"parts deeper than {depth} levels ({fault})"] = None
        schema = _cut_schema(schema, depth)
    if (fault := _fault(schema)) is None:
        return schema
    lost[f"the schema ({fault})"] = None
    kind = schema.get("type")
    return {"type": kind} if kind in ("object", "array", "string", "integer", "number", "boolean") else {}


def _fault(schema: dict[str, Any]) -> str | None:
    compiled = compile_schema(schema)
    if isinstance(compiled, Fault):
        return compiled.message[:120]
    trap = next(find_hazards(schema), None)
    return None if trap is None else trap.message[:120]


def _depth_within(schema: dict[str, Any], most: int) -> int | None:
    """Return how many levels of a schema have at most this many parts; None if the whole schema has."""
    level: list[dict[str, Any]] = [schema]
    count = depth = 0
    while level:
        count += len(level)
        if count > most:
            return max(1, depth - 1)
        level = [part for node in level for part in children(node)]
        depth += 1
    return None


def _cut_schema(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """Copy a schema whose parts below a depth accept anything of their type; drop unused definitions."""
    cut = cut_part(schema, depth, ("type", "description", "$ref", "enum", "format"))
    definitions = cut.get("$defs")
    if not isinstance(definitions, dict):
        return cut
    rest = {key: value for key, value in cut.items() if key != "$defs"}
    used = reached(names_in(rest), lambda name: names_in(definitions.get(name, {})))
    kept = {name: definitions[name] for name in definitions if name in used}
    return {**rest, "$defs": kept} if kept else rest


def cut_part(node: dict[str, Any], depth: int, kept: tuple[str, ...]) -> dict[str, Any]:
    """Copy a schema whose parts below a depth only have the `kept` keywords."""
    if depth <= 0:
        return {key: node[key] for key in kept if key in node}
    return with_children(node, lambda part: cut_part(part, depth - 1, kept))


def without_instructions(service: Service) -> tuple[Service, list[LeftOut]]:
    """Return a service without texts that instruct a model, and what was left out.

    An endpoint goes with its intent or outcome. Of every other text the part before the instruction stays.
    """
    left_out: list[LeftOut] = []
    endpoints = []
    for endpoint in service.endpoints:
        semantic = endpoint.semantic
        required = {"intent": semantic.intent, "outcome": semantic.outcome, "actor": semantic.actor}
        faults = (f"its {name} holds {fault}" for name, text in required.items() if (fault := plain_text(text).fault))
        if fault := next(faults, ""):
            left_out.append(LeftOut(str(endpoint), fault))
        else:
            endpoints.append(_clean(endpoint, left_out))
    name, description = service.identity.name, service.description
    return replace(
        service,
        identity=replace(service.identity, name=_safe_text(name, "the name of the service", left_out)),
        description=_safe_text(description, "the description of the service", left_out),
        endpoints=tuple(endpoints),
    ), left_out


def _clean(endpoint: Endpoint, left_out: list[LeftOut]) -> Endpoint:
    errors = tuple(
        DeclaredError(one.name, _safe_text(one.description, f"{endpoint}, error {one.name}", left_out))
        for one in endpoint.errors
    )
    return replace(
        endpoint,
        description=_safe_text(endpoint.description, str(endpoint), left_out),
        errors=errors,
        input_schema=_schema(endpoint.input_schema, f"{endpoint}, input", left_out),
        output_schema=_schema(endpoint.output_schema, f"{endpoint}, output", left_out),
    )


def _safe_text(text: str, what: str, left_out: list[LeftOut]) -> str:
    plain = plain_text(text, 600)
    if plain.fault:
        left_out.append(LeftOut(what, f"a part of the text is left out: it holds {plain.fault}"))
    return plain.text if plain.fault else text


def _schema(schema: Mapping[str, Any], what: str, left_out: list[LeftOut]) -> Mapping[str, Any]:
    """Return a schema without texts, names and values that instruct a model; the same one if it has none."""
    clean, lost = SchemaFitter(verbatim=True).clean(schema)
    spoken = [loss for loss in lost if "text" in loss]
    left_out += [LeftOut(what, f"without {loss}") for loss in spoken]
    return clean if spoken else schema
