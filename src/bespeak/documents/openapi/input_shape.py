"""The input of an endpoint: one flat object of parameters and body, and the place of each field upstream."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.handler import is_reserved_header
from bespeak.contract.schema.compile import compile_schema
from bespeak.contract.schema.reference import resolve
from bespeak.documents.adoption.guess import Guess
from bespeak.documents.adoption.naming import snake_case, unused, words
from bespeak.documents.adoption.path_choice import PathChoice
from bespeak.documents.openapi.adopted_definitions import Definitions
from bespeak.documents.openapi.body_shape import BodyShape, members, shape_body
from bespeak.documents.openapi.description import Operation, Parameter
from bespeak.documents.openapi.exclusions import exclusions
from bespeak.documents.openapi.schema_fit import SchemaFitter, bound
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.protocol.fault import Fault

_OWN_HEADERS: Final = frozenset({"accept", "accept-charset", "user-agent", "origin", "referer"})
"""Headers that a caller must not choose, because they could forge an identity or break the exchange."""
_BODYLESS: Final = frozenset({"GET", "HEAD"})
_PAGE_SIZES: Final = frozenset(
    {
        *("limit", "perpage", "pagesize", "count", "first", "top", "maxresults", "pagelimit", "maxitems", "take"),
        *("rows", "itemsperpage", "resultsperpage", "size", "maxrecords", "numresults"),
    }
)
_LARGEST_PAGE: Final = 100
_USUAL_PAGE: Final = 20


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
    own_query: list[tuple[str, str]] = field(default_factory=list)
    """Query parameters in the URL itself: fixed values and default page sizes."""
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
    body = shape_body(operation.body if operation.method not in _BODYLESS else None, fitter)
    return body if isinstance(body, str) else _Shaper(path, fitter, credentials).run(operation, body)


class _Shaper:
    """Builds one input."""

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
            found = declared.get(name)
            self._add_path(name, found.schema if found else {"type": "string"}, found.description if found else "")
        for parameter in operation.parameters:
            if parameter.place != "path":
                self._add_parameter(parameter)
        self._add_body(body)
        self._note_exclusions(operation)
        self._finish()
        return self._shape

    def _add_path(self, name: str, schema: Mapping[str, Any], description: str) -> None:
        own = self._path.parameters[name]
        clean = self._clean(schema, description)
        # An empty value would address another resource, such as the collection.
        if clean.get("type") == "string" and not {"minLength", "enum", "const", "pattern"} & clean.keys():
            clean = {**clean, "minLength": 1}
        self._properties[own] = clean
        self._required.append(own)

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
            self._rename(own, name)
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
        if parameter.place == "cookie":
            return is_header_name(parameter.name) and parameter.name not in self._shape.cookie_fields.values()
        taken = {name.lower() for name in self._shape.header_fields.values()}
        return is_header_name(parameter.name) and parameter.name.lower() not in taken

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
        kinds = schema.get("type")
        if "".join(words(name)) not in _PAGE_SIZES or kinds not in ("integer", "number"):
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
            paged["default"] = min(max(_USUAL_PAGE, least), most)
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
            self._rename(own, name)
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

    def _rename(self, own: str, name: str) -> None:
        if own != name:
            self._shape.transform[own] = name

    def _guess(self, text: str, why: str, confidence: float, otherwise: str = "") -> None:
        self._shape.guesses.append(
            Guess(at="/input_schema", text=text, why=why, confidence=confidence, otherwise=otherwise)
        )


def _exploded(parameter: Parameter) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield the properties of an object that are separate query parameters (style form, exploded)."""
    schema = parameter.schema
    if parameter.place == "query" and parameter.style == "form" and parameter.explode and not parameter.is_json:
        for name, part, needed in members(schema):
            own = {**part, "$defs": schema["$defs"]} if "$defs" in schema else part
            yield name, own, needed and parameter.required
