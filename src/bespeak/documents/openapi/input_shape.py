"""The input of an endpoint: one flat object of parameters and body, and the place of each field upstream."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

from bespeak.contract.handler import is_reserved_header
from bespeak.contract.schema.subschemas import resolve, target
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.adoption.facade import UNSURE, Guess, Risk
from bespeak.documents.adoption.path_choice import PathChoice
from bespeak.documents.adoption.sanitizer import Definitions, SchemaFitter, bound
from bespeak.documents.openapi.description import Body, Encoding, Operation, Parameter, is_json, list_style, media_form
from bespeak.protocol.exchange.headers import is_header_name, is_header_value, is_media_type
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.identifiers import unused
from bespeak.text.language.names import LIMITS, join, snake_case, stems

# Keywords that make an object more than a list of properties.
_COMPOSING: Final = ("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "$ref", "propertyNames")
_PLAIN: Final = Encoding()


@dataclass(slots=True)
class BodyShape:
    form: str = "none"
    properties: dict[str, Any] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    required: bool = False
    whole: dict[str, Any] | None = None  # schema of a body that becomes one field
    files: tuple[str, ...] = ()
    lists: dict[str, str] = field(default_factory=dict)  # notations of fields of a form, if they differ from `repeat`
    reserved: list[str] = field(default_factory=list)  # fields whose reserved characters are not percent-encoded
    part_types: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    guesses: list[Guess] = field(default_factory=list)


def shape_body(body: Body | None, fitter: SchemaFitter) -> BodyShape | str:
    """Return the shape of a body, or why the operation cannot be called: it needs a body that cannot be sent."""
    if body is None:
        return BodyShape()
    kind = media_form(body.media_type)
    form = "json" if kind in ("json", "json-like", "any") else kind
    if form not in ("json", "form", "multipart"):
        reason = f"its body is {body.media_type[:80]}; only JSON, forms and multipart can be sent"
        if body.required:
            return reason
        return BodyShape(guesses=[_guess("no body is sent", reason, 0.5, "an upstream that takes JSON")])
    clean, lost = fitter.clean(body.schema)
    if clean.keys() == {"$ref", "$defs"}:
        found = target(clean["$ref"], clean)
        clean = {**found, "$defs": clean["$defs"]} if isinstance(found, dict) and "$defs" not in found else clean
    shape = BodyShape(form=form, required=body.required, lost=lost)
    if kind == "json-like":
        shape.headers["Content-Type"] = body.media_type
    if body.other_types:
        others = ", ".join(body.other_types[:3])
        shape.guesses.append(_guess(f"sent as {body.media_type}", "one of several is sent", 0.8, others))
    if not body.required and clean.get("properties") == {} and not clean.keys() - {"type", "properties", "$defs"}:
        return BodyShape()  # an optional body without fields is not sent
    if not _is_flat(clean):
        return _whole(shape, clean, body)
    shape.definitions = clean.get("$defs", {})
    parts = clean["properties"].items()
    shape.properties = {
        name: part for name, part in parts if not (isinstance(part, dict) and part.get("readOnly") is True)
    }
    needed = clean.get("required")
    shape.needed = tuple(name for name in needed if name in shape.properties) if isinstance(needed, list) else ()
    if form == "multipart":
        encoded = ((name, part, body.encoding.get(name, _PLAIN)) for name, part in shape.properties.items())
        shape.files = tuple(name for name, part, encoding in encoded if _is_file(part, encoding))
        shape.properties.update({name: _file(shape.properties[name]) for name in shape.files})
    if form != "json":
        for name in [name for name in shape.properties if name in body.encoding]:
            _encode(shape, name, body.encoding[name])
    return shape if body.required or shape.properties else BodyShape()


def _encode(shape: BodyShape, name: str, encoding: Encoding) -> None:
    kind = next(filter(is_media_type, encoding.content_types), "")
    if shape.form == "multipart" and kind and (not encoding.style or name in shape.files):
        shape.part_types[name] = kind
        if len(encoding.content_types) > 1:
            others = ", ".join(one for one in encoding.content_types if one != kind)
            shape.guesses.append(_guess(f"{name} is sent as {kind}", "one of several is sent", 0.6, others))
    if name in shape.files:
        return
    if not encoding.style:
        if shape.form == "form" and is_json(kind):
            shape.lists[name] = "json"
        return
    if encoding.reserved and shape.form == "form":
        shape.reserved.append(name)
    schema = resolve(shape.properties[name], {"$defs": shape.definitions}, most=8)
    style = list_style(encoding.style, schema, explode=encoding.explode)
    if style != "repeat":
        shape.lists[name] = style
    elif shape.form == "form" and schema.get("type") == "object":
        # In multipart an object stays one JSON part: OpenAPI 3.0 ignores the style there, and tools write it always.
        _spread(shape, name, schema)


def _spread(shape: BodyShape, name: str, schema: Mapping[str, Any]) -> None:
    """Replace an object by its properties, which are separate fields of a form (style form, exploded)."""
    parts = {key: part for key, part, _ in members(schema)}
    if not parts or parts.keys() & shape.properties.keys():
        why = "its properties are not known, or their names are taken"
        shape.guesses.append(_guess(f"{name} is sent as JSON", why, 0.4, "one field for each property"))
        return
    needed = dict.fromkeys(shape.needed)
    if name in needed:
        needed.update((key, None) for key, _, required in members(schema) if required)
    shape.needed = tuple(key for key in needed if key != name)
    entries = [(parts if key == name else {key: part}) for key, part in shape.properties.items()]
    shape.properties = {key: part for entry in entries for key, part in entry.items()}


def members(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield the properties of an object, and True for required ones."""
    properties, required = schema.get("properties"), schema.get("required", ())
    if schema.get("type") == "object" and isinstance(properties, Mapping):
        for name, part in properties.items():
            yield name, part if isinstance(part, Mapping) else {}, name in required


def _whole(shape: BodyShape, clean: dict[str, Any], body: Body) -> BodyShape | str:
    if shape.form != "json":
        empty = clean.get("type") in (None, "object") and not clean.get("properties")
        fault = "names no fields" if empty else "is not a plain list of fields"
        return f"its {body.media_type[:80]} body {fault}" if body.required else BodyShape()
    shape.whole = clean
    shape.guesses.append(_guess("the body is one field", "it is not a plain object", 0.8, "a flat object of its own"))
    return shape


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return True if an object is only its properties; one that declares more is kept whole."""
    properties = schema.get("properties")
    return (
        schema.get("type", "object") == "object"
        and isinstance(properties, dict)
        and bool(properties)
        and not any(keyword in schema for keyword in _COMPOSING)
        and schema.get("additionalProperties", False) is False
        and "minProperties" not in schema
    )


def _is_file(part: Any, encoding: Encoding) -> bool:
    if not isinstance(part, Mapping):
        return False
    if part.get("type") == "array":
        return _is_file(part.get("items"), encoding)
    if part.get("type", "string") == "string" and "binary" in map(media_form, encoding.content_types):
        return not any(keyword in part for keyword in _COMPOSING)
    media = part.get("contentMediaType")
    binary = isinstance(media, str) and "json" not in media and not media.startswith("text/")
    return part.get("format") == "binary" or binary or part.get("contentEncoding") == "base64"


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a file: base64, because JSON cannot hold bytes."""
    if part.get("type") == "array":
        return {**part, "items": _file(part["items"])}
    text = {"description": part["description"]} if "description" in part else {}
    return {"type": "string", "contentEncoding": "base64", **text}


def _guess(text: str, why: str, confidence: float, otherwise: str) -> Guess:
    risk: Risk = "medium" if confidence < UNSURE else "low"
    return Guess("/input_schema", text, why, confidence, otherwise, risk)


_CHOOSING: Final = re.compile(r"\b(?:only|exactly|at most) one of\b|\beither\b[^.]{1,120}\bor\b", re.IGNORECASE)
"""Words before the fields of which one may be sent."""
_EXCLUDING: Final = re.compile(
    rf"{_CHOOSING.pattern}|mutually exclusive|\bnot both\b|\b(?:conflicts?|incompatible) with\b"
    r"|\bnot (?:compatible|allowed|supported|valid) (?:together )?with\b"
    r"|(?:can ?not|can't|must not|may not|should not|shouldn't|not be|never|do not|don't)\b[^.]{0,40}"
    r"\b(?:together|combin\w+|along(?:side)?|both|conjunction|in addition|(?:used?|set|given|specified|sent) with)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]*[A-Za-z0-9_$]|[A-Za-z]")
_MARKED: Final = re.compile(r"[`'\"*]")
_LONGEST: Final = 4_000  # maximum characters of a description that are searched
_MOST: Final = 10  # maximum pairs of one sentence


def exclusions(fields: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of fields whose descriptions say that only one of them may be sent, with the sentence."""
    seen: set[frozenset[str]] = set()
    for own, description in fields.items():
        if _EXCLUDING.search(description, 0, _LONGEST) is None:
            continue
        for sentence in _SENTENCE.split(description[:_LONGEST]):
            if _EXCLUDING.search(sentence) is None:
                continue
            named = dict.fromkeys(_named(sentence, fields))
            if _CHOOSING.search(sentence) is None or len(named) < 2:
                pairs = [(own, other) for other in named if other != own]
            else:
                pairs = list(combinations(named, 2))
            for pair in pairs[:_MOST]:
                if frozenset(pair) not in seen:
                    seen.add(frozenset(pair))
                    yield *pair, " ".join(sentence.split())[:160]


def _named(sentence: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that a sentence names. A name that is also a plain word counts only if it is marked."""
    for found in _NAME.finditer(sentence):
        name, around = found[0], sentence[max(0, found.start() - 1) : found.end() + 1]
        if name in fields and (not (name.isalpha() and name.islower()) or _MARKED.search(around)):
            yield name


_OWN_HEADERS: Final = frozenset({"accept", "accept-charset", "user-agent", "origin", "referer"})
"""Headers that a caller must not choose, because they could forge an identity or break the exchange."""
_LARGEST_PAGE: Final = 100


@dataclass(slots=True)
class InputShape:
    """An input schema, and the handler settings that map it to the upstream."""

    schema: dict[str, Any] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    lists: dict[str, str] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    header_fields: dict[str, str] = field(default_factory=dict)
    cookie_fields: dict[str, str] = field(default_factory=dict)
    transform: dict[str, str] = field(default_factory=dict)
    own_query: list[tuple[str, str]] = field(default_factory=list)  # in the URL itself: fixed values, page sizes
    headers: dict[str, str] = field(default_factory=dict)
    body: str = "none"
    body_field: str | None = None
    files: tuple[str, ...] = ()
    part_types: dict[str, str] = field(default_factory=dict)
    guesses: list[Guess] = field(default_factory=list)


def shape_input(
    operation: Operation, path: PathChoice, fitter: SchemaFitter, *, credentials: Collection[tuple[str, str]] = ()
) -> InputShape | str:
    """Build the input of an operation, or return why it cannot be called. Credentials are not part of the input."""
    body = shape_body(operation.body if operation.method not in {"GET", "HEAD"} else None, fitter)
    return body if isinstance(body, str) else _Shaper(path, fitter, credentials).run(operation, body)


class _Shaper:
    def __init__(self, path: PathChoice, fitter: SchemaFitter, credentials: Collection[tuple[str, str]]) -> None:
        self._path = path
        self._fitter = fitter
        self._credentials = credentials
        self._definitions = Definitions()
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._lost: dict[str, None] = {}
        self._shape = InputShape()

    def run(self, operation: Operation, body: BodyShape) -> InputShape:
        declared = {parameter.name: parameter for parameter in operation.parameters if parameter.place == "path"}
        for name in self._path.parameters:
            found, own = declared.get(name), self._path.parameters[name]
            clean = self._clean(found.schema, found.description) if found else self._clean({"type": "string"})
            # An empty value would address another resource, such as the collection.
            if clean.get("type") == "string" and not {"minLength", "enum", "const", "pattern"} & clean.keys():
                clean = {**clean, "minLength": 1}
            self._properties[own] = clean
            self._required.append(own)
        for parameter in operation.parameters:
            if parameter.place != "path":
                self._add_parameter(parameter)
        self._add_body(body)
        self._note_exclusions(operation)
        self._finish()
        return self._shape

    def _add_parameter(self, parameter: Parameter) -> None:
        if parameter.place == "header" and self._is_own_header(parameter):
            return
        if (parameter.place, parameter.name) in self._credentials:
            return
        if parameter.place in ("header", "cookie") and not self._is_sendable(parameter):
            why = "its name is not valid, or is used twice"
            self._guess(f"without the {parameter.place} {parameter.name[:60]!r}", why, 0.5)
            return
        if self._is_settled(parameter):
            return
        exploded = list(_exploded(parameter))
        for name, schema, required in exploded or [(parameter.name, parameter.schema, parameter.required)]:
            self._place(parameter, name, schema, required=required)

    def _place(self, parameter: Parameter, name: str, schema: Mapping[str, Any], *, required: bool) -> None:
        own = self._name(name, parameter.place)
        clean = self._clean(schema, parameter.description)
        shape = self._shape
        if parameter.place == "header":
            shape.header_fields[own] = name
        elif parameter.place == "cookie":
            shape.cookie_fields[own] = name
        else:
            shape.query.append(own)
            if own != name:
                shape.transform[own] = name
            if parameter.list_style != "repeat":
                shape.lists[own] = parameter.list_style
            if parameter.reserved:
                shape.reserved.append(own)
            clean = self._paged(own, name, clean)
        self._properties[own] = {**clean, "deprecated": True} if parameter.deprecated else clean
        if required:
            self._required.append(own)

    def _is_sendable(self, parameter: Parameter) -> bool:
        """Return True if a header or cookie has a valid name that is not taken."""
        name, taken = parameter.name, set(self._shape.cookie_fields.values())
        if parameter.place == "header":
            name, taken = name.lower(), {other.lower() for other in self._shape.header_fields.values()}
        return is_header_name(name) and name not in taken

    def _is_settled(self, parameter: Parameter) -> bool:
        """Return True if a required parameter has only one allowed value; that value is then always sent."""
        values = parameter.schema.get("enum", [parameter.schema.get("const")])
        if not parameter.required or not isinstance(values, list) or len(values) != 1:
            return False
        value = values[0]
        if not isinstance(value, str) or not value or not value.isascii() or "${" in value:
            return False
        if parameter.place == "header" and is_header_value(value):
            self._shape.headers[parameter.name] = value
        elif parameter.place == "query" and not parameter.is_json:
            self._shape.own_query.append((parameter.name, value))
        else:
            return False
        return True

    def _is_own_header(self, parameter: Parameter) -> bool:
        """Return True if callers must not set a header; a single allowed value is sent as it is."""
        name = parameter.name.lower()
        if name not in _OWN_HEADERS and not is_reserved_header(name):
            return False
        values = parameter.schema.get("enum") or [parameter.schema.get("const", parameter.schema.get("default"))]
        if parameter.required and name == "accept" and isinstance(values, list) and isinstance(values[0], str):
            self._shape.headers[parameter.name] = values[0]
        return True

    def _paged(self, own: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Limit a page size, so that an agent that asks for everything gets a page."""
        if join(stems(name)) not in LIMITS or schema.get("type") not in ("integer", "number"):
            return schema
        paged, page_limits = dict(schema), []
        if not {"maximum", "exclusiveMaximum", "enum", "const"} & schema.keys():
            given = [value for key in ("default", "minimum") if isinstance(value := schema.get(key), int)]
            paged["maximum"] = max(_LARGEST_PAGE, *given) if given else _LARGEST_PAGE
            page_limits.append(f"at most {paged['maximum']}")
        least, most = schema.get("minimum", 0), paged.get("maximum", _LARGEST_PAGE)
        if not {"default", "enum", "const", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"} & schema.keys() and (
            isinstance(least, int) and isinstance(most, int)
        ):
            paged["default"] = min(max(20, least), most)
            # Sent in the URL, where a caller's value replaces it, so that the default is really applied.
            self._shape.own_query.append((name, str(paged["default"])))
            page_limits.append(f"{paged['default']} by default")
        if page_limits:
            self._guess(f"{own}: {', '.join(page_limits)}", "a page needs a limit", 0.6, "the upstream's own limits")
        return paged

    def _add_body(self, body: BodyShape) -> None:
        shape = self._shape
        shape.body = body.form
        shape.headers.update(body.headers)
        self._lost.update(dict.fromkeys(body.lost))
        shape.guesses += body.guesses
        if body.whole is not None:
            shape.body_field = self._name("body", "body")
            self._properties[shape.body_field] = self._definitions.adopt(body.whole)
            if body.required:
                self._required.append(shape.body_field)
            return
        named: dict[str, str] = {}
        adopted = self._definitions.adopt({"properties": body.properties, "$defs": body.definitions})
        for name, schema in adopted["properties"].items():
            own = named[name] = self._name(name, "body")
            self._properties[own] = dict(schema) if isinstance(schema, Mapping) else ({} if schema else {"not": {}})
            if own != name:
                shape.transform[own] = name
        shape.files = tuple(named[name] for name in body.files)
        shape.lists.update((named[name], style) for name, style in body.lists.items())
        shape.reserved += [named[name] for name in body.reserved]
        shape.part_types = {named[name]: kind for name, kind in body.part_types.items()}
        needed = [named[name] for name in body.needed]
        if body.required:
            self._required += needed
        elif needed:
            # The body may be omitted, but if it is sent, its required fields must be there.
            shape.schema["dependentRequired"] = dict.fromkeys(named.values(), needed)

    def _note_exclusions(self, operation: Operation) -> None:
        shape = self._shape
        upstream = {**shape.transform, **shape.header_fields, **shape.cookie_fields}
        optional = {upstream.get(own, own): own for own in self._properties if own not in self._required}
        # Descriptions as they were written: the marks around names are not in the contract.
        said = {one.name: one.description or one.schema.get("description") for one in operation.parameters}
        if operation.body is not None:
            body = resolve(operation.body.schema, operation.body.schema, most=8)
            said.update((name, part.get("description")) for name, part, _ in members({"type": "object", **body}))
        texts = {name: str(said.get(name) or "") for name in optional}
        for one, other, sentence in exclusions(texts):
            text = f"{optional[one]} and {optional[other]} may be sent together"
            self._guess(text, f"its description says: {sentence}", 0.4, "send only one of them")

    def _finish(self) -> None:
        shape = self._shape
        for name, schema in self._properties.items():
            if "default" in schema and not self._keeps_default(schema):
                self._properties[name] = {key: value for key, value in schema.items() if key != "default"}
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "required": list(dict.fromkeys(self._required)),
            **shape.schema,
            "additionalProperties": False,
        }
        if self._definitions.found:
            whole["$defs"] = self._definitions.found
        fitted, lost = bound(whole)
        if fitted.get("properties", {}).keys() != self._properties.keys():
            fitted = {**whole, "properties": {name: {} for name in self._properties}}
            fitted.pop("$defs", None)
        self._lost.update(dict.fromkeys(lost))
        shape.schema = fitted
        for loss in self._lost:
            self._guess(f"without {loss}", "an endpoint file cannot express it", 0.7, "a schema of your own")

    def _keeps_default(self, schema: Mapping[str, Any]) -> bool:
        compiled = compile_schema(schema)
        if isinstance(compiled, Fault):
            # It may refer to a definition. They are added only now, because they are many and most defaults need none.
            compiled = compile_schema({**schema, "$defs": self._definitions.found})
        return isinstance(compiled, Fault) or compiled.is_valid(schema["default"])

    def _clean(self, schema: Mapping[str, Any], description: str = "") -> dict[str, Any]:
        clean, lost = self._fitter.clean(schema)
        self._lost.update(dict.fromkeys(lost))
        if description and "description" not in clean:
            text, more = self._fitter.clean({"description": description})
            self._lost.update(dict.fromkeys(more))
            clean = {**clean, **text}
        return self._definitions.adopt(clean)

    def _name(self, name: str, place: str) -> str:
        """Return the name of a field; if it is taken, add where its namesake comes from."""
        own = snake_case(name)
        if own not in self._properties:
            return own
        clash = unused(f"{place}_{own}", self._properties)
        self._guess(f"{clash} is the {name!r} of the {place}", "the name is already taken", 0.8)
        return clash

    def _guess(self, text: str, why: str, confidence: float, otherwise: str = "") -> None:
        self._shape.guesses.append(Guess("/input_schema", text, why, confidence, otherwise))


def _exploded(parameter: Parameter) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield the properties of an object that are separate query parameters (style form, exploded)."""
    schema = parameter.schema
    if parameter.place == "query" and parameter.style == "form" and parameter.explode and not parameter.is_json:
        for name, part, needed in members(schema):
            own = {**part, "$defs": schema["$defs"]} if "$defs" in schema else part
            yield name, own, needed and parameter.required
