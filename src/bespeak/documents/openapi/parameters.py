"""The parameters of an operation: place, style and schema of each, and the `encoding` of the fields of a form."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.documents.openapi.description import Encoding, Parameter, Place, is_json, preferred
from bespeak.documents.openapi.document_text import Notices, Spot
from bespeak.documents.openapi.references import RefResolver
from bespeak.documents.openapi.rules import NOT_IMPORTED, UNCLEAR_BODY, UNCLEAR_PARAMETER
from bespeak.documents.openapi.schema_conversion import SchemaReader
from bespeak.protocol.exchange.headers import is_media_type
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import DUPLICATE, WRONG_VALUE

# Styles of a query parameter and of a field of a form, the default first.
FORM_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_STYLING: Final = ("style", "explode", "allowReserved")


def read_style(spot: Spot, styles: tuple[str, ...], place: str, notices: Notices) -> tuple[str, bool]:
    """Return the style of a value, and True if it is exploded. `styles` lists the allowed ones, the default first."""
    style = spot.text("style") or styles[0]
    if style not in styles:
        message = f"the style {brief(style)} is not allowed for a {place}; {styles[0]} is used"
        notices.warning(UNCLEAR_PARAMETER, message, spot.below("style"))
        style = styles[0]
    explode = spot.flag("explode")
    return style, explode if explode is not None else style in {"form", "deepObject"}


def read_encodings(media_type: Spot, notices: Notices) -> dict[str, Encoding]:
    listed = media_type.below("encoding")
    if listed.value is None:
        return {}
    if not isinstance(listed.value, dict):
        notices.warning(UNCLEAR_BODY, f"`encoding` is {brief(listed.value)}, not an object; it is ignored", listed)
        return {}
    return {name: _encoding(listed.below(name), notices) for name in listed.value}


def _encoding(spot: Spot, notices: Notices) -> Encoding:
    if not isinstance(spot.value, dict):
        notices.warning(UNCLEAR_BODY, f"an encoding is {brief(spot.value)}, not an object; it is ignored", spot)
        return Encoding()
    if spot.value.get("headers"):
        notices.info(NOT_IMPORTED, "the headers of a part of a body are not sent", spot.below("headers"))
    style, explode = "", True
    if any(key in spot.value for key in _STYLING):
        # One of these keys makes `contentType` meaningless (OpenAPI 3.1.1, 4.8.15.1.2), except for files.
        style, explode = read_style(spot, FORM_STYLES, "field of a form", notices)
    named = [name.strip() for name in spot.text("contentType").split(",")]
    types = [name for name in named if is_media_type(name.replace("*", "x"))]
    return Encoding(
        style=style,
        explode=explode,
        reserved=bool(spot.flag("allowReserved")),
        content_types=tuple(sorted(types, key=lambda name: "*" in name)),
    )


MAX_PARAMETERS: Final = 200
_STYLES: Final[dict[Place, tuple[str, ...]]] = {  # styles of each place, the default first
    "path": ("simple", "label", "matrix"),
    "query": FORM_STYLES,
    "header": ("simple",),
    "cookie": ("form",),
}
_COLLECTIONS: Final = {
    "csv": ("", False),
    "multi": ("form", True),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
}
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that OpenAPI describes elsewhere: as media types and as security."""
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")


class ParameterReader:
    """Reads the parameters of one description. A parameter that several operations share is read once."""

    def __init__(self, references: RefResolver, schemas: SchemaReader, notices: Notices, *, swagger: bool) -> None:
        self._references = references
        self._schemas = schemas
        self._notices = notices
        self._swagger = swagger
        self._known: dict[tuple[str, str], Parameter | None] = {}
        self._levels: dict[tuple[str, str], list[Spot]] = {}

    def read(self, item: Spot, operation: Spot, path: str) -> tuple[Parameter, ...]:
        """Read the parameters of an operation, of its path item, and those that only its path template names."""
        found: dict[tuple[str, str], Parameter] = {}
        for level in (item, operation):
            here: set[tuple[str, str]] = set()
            for spot in self.spots(level):
                if spot.key not in self._known:
                    self._known[spot.key] = self._read(spot)
                made = self._known[spot.key]
                if made is None:
                    continue
                key = (made.name.lower() if made.place == "header" else made.name, made.place)
                if key in here:
                    message = f"the {made.place} parameter {brief(made.name)} is described twice; the first one counts"
                    self._notices.warning(DUPLICATE, message, spot, "Remove one of the two.")
                    continue
                here.add(key)
                found[key] = made
        return self._with_path(found, operation, path)

    def spots(self, level: Spot) -> list[Spot]:
        """Return the parameters of a path or an operation, with references resolved."""
        if level.value.get("parameters") is None:
            return []
        listed = level.below("parameters")
        if listed.key not in self._levels:
            self._levels[listed.key] = self._followed(listed)
        return self._levels[listed.key]

    def _followed(self, listed: Spot) -> list[Spot]:
        if not isinstance(listed.value, list):
            self._notices.error(WRONG_VALUE, f"`parameters` is {brief(listed.value)}, not a list", listed)
        spots = list(listed.items())
        if len(spots) > MAX_PARAMETERS:
            message = f"there are {len(spots):,} parameters; those after the first {MAX_PARAMETERS} are left out"
            self._notices.error(UNCLEAR_PARAMETER, message, listed)
        followed = (self._references.follow(spot) for spot in spots[:MAX_PARAMETERS])
        return [spot for spot in followed if spot is not None]

    def _read(self, spot: Spot) -> Parameter | None:
        if not isinstance(spot.value, dict):
            self._notices.error(WRONG_VALUE, f"a parameter is {brief(spot.value)}, not an object", spot)
            return None
        place, name, description = spot.texts("in", "name", "description")
        if self._swagger and place in {"body", "formData"}:
            return None  # part of the body
        if place not in _STYLES or not name:
            what = "has no name" if not name else f"is in {brief(spot.value.get('in'))}"
            advice = "It is in path, query, header or cookie, and has a name."
            self._notices.error(UNCLEAR_PARAMETER, f"a parameter {what}, and is left out", spot, advice)
            return None
        if place == "header" and name.lower() in _IGNORED_HEADERS:
            message = f"the header {brief(name)} is not a parameter: the facade sets it itself"
            self._notices.info(UNCLEAR_PARAMETER, message, spot)
            return None
        style, explode = self.style(spot, place)
        schema, as_json = self._schema(spot)
        return Parameter(
            name=name,
            place=place,
            required=place == "path" or bool(spot.flag("required")),
            schema=schema,
            description=description,
            style=style,
            explode=explode,
            is_json=as_json,
            deprecated=bool(spot.flag("deprecated")),
            reserved=bool(spot.flag("allowReserved")),
        )

    def style(self, spot: Spot, place: Place) -> tuple[str, bool]:
        default = _STYLES[place][0]
        if self._swagger:
            collection = spot.text("collectionFormat") or "csv"
            if spot.value.get("type") != "array":
                return default, default == "form"
            if collection not in _COLLECTIONS:
                message = f"values joined as {brief(collection)} are sent with commas"
                self._notices.warning(UNCLEAR_PARAMETER, message, spot.below("collectionFormat"))
                collection = "csv"
            wanted, repeated = _COLLECTIONS[collection]
            return (wanted if wanted in _STYLES[place] else default), repeated
        return read_style(spot, _STYLES[place], f"{place} parameter", self._notices)

    def _schema(self, spot: Spot) -> tuple[dict[str, Any], bool]:
        """Return the schema of a parameter, and True if its value is sent as JSON."""
        if self._swagger:
            return dict(self._schemas.read(without_place(spot), "input")), False
        content = spot.below("content")
        if offered := preferred([name for name, _ in content.entries()]):
            media_type = offered[0]
            schema = content.below(media_type, "schema")
            as_json = is_json(media_type)
            if not as_json:
                message = f"a value of type {brief(media_type)} is sent unchanged"
                self._notices.warning(UNCLEAR_PARAMETER, message, content)
            return (dict(self._schemas.read(schema, "input")) if schema.value is not None else {}), as_json
        schema = spot.below("schema")
        if schema.value is None:
            message = f"the parameter {brief(spot.text('name'))} has no schema; a string is assumed"
            self._notices.info(UNCLEAR_PARAMETER, message, spot)
            return {"type": "string"}, False
        return dict(self._schemas.read(schema, "input")), False

    def _with_path(self, found: dict[tuple[str, str], Parameter], operation: Spot, path: str) -> tuple[Parameter, ...]:
        wanted = list(dict.fromkeys(_TEMPLATE.findall(path)))
        for name, place in [key for key in found if key[1] == "path" and key[0] not in wanted]:
            message = f"{{{name[:80]}}} is described but is not in the path {brief(path)}; it is left out"
            self._notices.warning(UNCLEAR_PARAMETER, message, operation)
            del found[name, place]
        for name in wanted:
            if (name, "path") not in found:
                message = f"{{{name[:80]}}} is in the path but not described; a string is assumed"
                self._notices.warning(UNCLEAR_PARAMETER, message, operation, "Describe it under `parameters`.")
                found[name, "path"] = Parameter(
                    name=name, place="path", required=True, schema={"type": "string"}, style="simple", explode=False
                )
        return tuple(found.values())


_OF_PARAMETERS: Final = frozenset(
    {"name", "in", "required", "collectionFormat", "allowEmptyValue", "description", "deprecated"}
)


def without_place(spot: Spot) -> Spot:
    """Return the schema in a 2.0 parameter, which is its own schema."""
    return Spot({key: value for key, value in spot.value.items() if key not in _OF_PARAMETERS}, spot.document, spot.at)
