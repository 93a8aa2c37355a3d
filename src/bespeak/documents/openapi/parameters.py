"""The parameters of an operation: place, style and schema of each, and the `encoding` of the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bespeak.documents.openapi.description import (
    JSON,
    MULTIPART,
    Body,
    DocumentedResponse,
    Encoding,
    Parameter,
    Place,
    default_schema,
    is_json,
    media_form,
    preferred,
    sent_type,
)
from bespeak.documents.openapi.document_text import Notices, RefResolver, Spot
from bespeak.documents.openapi.schema_conversion import Direction, SchemaReader
from bespeak.documents.rules import NOT_IMPORTED, UNCLEAR_BODY, UNCLEAR_PARAMETER
from bespeak.protocol.exchange.headers import FORM, is_media_type
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import DUPLICATE, MISSING_KEY, WRONG_VALUE
from bespeak.text.reading.table import as_mapping

# Styles of a query parameter and of a field of a form, the default first.
FORM_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


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
    if any(key in spot.value for key in ("style", "explode", "allowReserved")):
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


@dataclass(slots=True)
class _Reader:
    _references: RefResolver
    _schemas: SchemaReader
    _notices: Notices
    _swagger: bool  # True for a description in OpenAPI 2.0


@dataclass(slots=True)
class ParameterReader(_Reader):
    """Reads the parameters of one description. A parameter that several operations share is read once."""

    _known: dict[tuple[str, str], Parameter | None] = field(default_factory=dict)
    _levels: dict[tuple[str, str], list[Spot]] = field(default_factory=dict)

    def read(self, item: Spot, operation: Spot, path: str) -> tuple[Parameter, ...]:
        """Read the parameters of an operation, of its path item, and those that only its path template names."""
        found: dict[tuple[str, str], Parameter] = {}
        for level in (item, operation):
            here: set[tuple[str, str]] = set()
            for spot in self.spots(level):
                if spot.key not in self._known:
                    self._known[spot.key] = self._read(spot)
                if (made := self._known[spot.key]) is None:
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
            if not (as_json := is_json(media_type)):
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


MAX_ANSWERS: Final = 100
_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|XX)|DEFAULT")
_FORMS: Final = ("form", "multipart")


class TypedContent(NamedTuple):
    """Content of a body or a response, in the media type that is sent."""

    media_type: str
    schema: dict[str, Any]
    other_types: tuple[str, ...]  # other media types that are offered
    spot: Spot  # place of the media type


@dataclass(slots=True)
class BodyReader(_Reader):
    """Reads request bodies and responses of one description. What several operations share is read once."""

    _bodies: dict[tuple[str, str], Body | None] = field(default_factory=dict)
    _responses: dict[tuple[tuple[str, str], str, str], DocumentedResponse] = field(default_factory=dict)

    def read(self, operation: Spot, method: str) -> Body | None:
        given = operation.below("requestBody")
        if given.value is None:
            return None
        if (spot := self._references.follow(given)) is None:
            return Body(media_type=JSON, required=False, schema={})
        if method in {"GET", "HEAD", "TRACE"}:
            # Some tools describe an empty form for every operation.
            schemas = (as_mapping(kind.below("schema").value) for _, kind in spot.below("content").entries())
            if any(schema and schema.get("properties") != {} for schema in schemas):
                self._notices.warning(UNCLEAR_BODY, f"a body of {method} has no meaning, and is left out", given)
            return None
        if spot.key not in self._bodies:
            self._bodies[spot.key] = self._body(spot)
        return self._bodies[spot.key]

    def _body(self, spot: Spot) -> Body | None:
        if (found := self._content(spot, "input")) is None:
            self._notices.error(UNCLEAR_BODY, "the body has no `content`; any JSON is sent", spot)
            return Body(media_type=JSON, required=False, schema={})
        return Body(
            media_type=found.media_type,
            required=bool(spot.flag("required")),
            schema=found.schema,
            description=spot.text("description"),
            other_types=found.other_types,
            encoding=read_encodings(found.spot, self._notices) if media_form(found.media_type) in _FORMS else {},
        )

    def _content(self, spot: Spot, direction: Direction) -> TypedContent | None:
        """Read the content in the media type to send; return None if there is none."""
        content = spot.value.get("content") if isinstance(spot.value, dict) else None
        names = content if isinstance(content, dict) else ()
        if not (offered := preferred([name for name in names if not name.startswith("x-")])):
            return None
        if len(offered) > 1 and direction == "input":
            shown = ", ".join(offered[1:5])
            self._notices.info(UNCLEAR_BODY, f"{offered[0]} is sent; {shown} is also offered", spot.below("content"))
        given = spot.below("content", offered[0])
        chosen = self._references.follow(given) or Spot(None, given.document, given.at)
        schema = chosen.below("schema")
        if schema.value in (None, {}, True):
            if media_form(offered[0]) == "json":
                self._notices.info(UNCLEAR_BODY, "the body has no schema; any JSON is accepted", spot.below("content"))
            made = default_schema(offered[0])
        else:
            made = dict(self._schemas.read(schema, direction))
            if "type" not in made and "$ref" not in made and media_form(offered[0]) == "binary":
                made = default_schema(offered[0])
        return TypedContent(sent_type(offered[0]), made, tuple(offered[1:]), chosen)

    def read_swagger(
        self, item: Spot, operation: Spot, parameters: ParameterReader, consumes: list[str]
    ) -> Body | None:
        """Read the body of a 2.0 operation: one parameter for the whole body, or one for each field of a form."""
        spots: dict[tuple[str, str], Spot] = {}
        for level in (item, operation):
            for spot in parameters.spots(level):
                place, name = spot.texts("in", "name")
                if place in {"body", "formData"}:
                    spots["" if place == "body" else name, place] = spot
        if (whole := spots.pop(("", "body"), None)) is not None:
            if spots:
                message = "there is a body, so the fields of a form are left out"
                self._notices.error(UNCLEAR_PARAMETER, message, operation)
            return self._whole(whole, consumes)
        return self._form(list(spots.values()), operation, parameters, consumes) if spots else None

    def _whole(self, spot: Spot, consumes: list[str]) -> Body:
        offered = preferred(consumes) or [JSON]
        schema = spot.below("schema")
        made = dict(self._schemas.read(schema, "input")) if schema.value is not None else default_schema(offered[0])
        return Body(
            media_type=sent_type(offered[0]),
            required=bool(spot.flag("required")),
            schema=made,
            description=spot.text("description"),
            other_types=tuple(offered[1:]),
        )

    def _form(self, spots: list[Spot], operation: Spot, parameters: ParameterReader, consumes: list[str]) -> Body:
        has_file = any(spot.value.get("type") == "file" for spot in spots)
        offered = [kind for kind in preferred(consumes) if media_form(kind) in _FORMS]
        media_type = MULTIPART if has_file or (offered and media_form(offered[0]) == "multipart") else FORM
        properties: dict[str, Any] = {}
        required: list[str] = []
        encoding: dict[str, Encoding] = {}
        for spot in spots:
            name, description = spot.texts("name", "description")
            if not name:
                self._notices.error(UNCLEAR_PARAMETER, "a field of a form has no name, and is left out", spot)
                continue
            schema = dict(self._schemas.read(without_place(spot), "input"))
            if description:
                schema.setdefault("description", description)
            properties[name] = schema
            style, explode = parameters.style(spot, "query")
            encoding[name] = Encoding(style=style, explode=explode)
            if spot.flag("required"):
                required.append(name)
        if not properties:
            self._notices.warning(UNCLEAR_BODY, f"the form of {brief(operation.at)} has no fields", operation)
        made: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            made["required"] = required
        others = tuple(kind for kind in offered if media_form(kind) != media_form(media_type))
        return Body(media_type=media_type, required=bool(required), schema=made, other_types=others, encoding=encoding)

    def read_responses(self, operation: Spot, produces: list[str]) -> tuple[DocumentedResponse, ...]:
        """Read the responses of an operation, in the order of the description."""
        listed = operation.below("responses")
        if not isinstance(listed.value, dict):
            self._notices.warning(MISSING_KEY, "the operation has no `responses`", operation)
            return ()
        found: dict[str, DocumentedResponse] = {}
        for key, spot in listed.entries():
            status = key.strip().upper()
            if _STATUS.fullmatch(status) is None:
                self._notices.warning(WRONG_VALUE, f"{brief(key)} is not a response status, and is left out", spot)
                continue
            if len(found) == MAX_ANSWERS:
                break
            status = "default" if status == "DEFAULT" else status
            found.setdefault(status, self._answer(status, spot, produces))
        return tuple(found.values())

    def _answer(self, status: str, given: Spot, produces: list[str]) -> DocumentedResponse:
        if (spot := self._references.follow(given)) is None:
            return DocumentedResponse(status=status, media_type=JSON, schema={})
        key = (spot.key, status, produces[0] if produces else "")
        if key not in self._responses:
            self._responses[key] = self._response(status, spot, produces)
        return self._responses[key]

    def _response(self, status: str, spot: Spot, produces: list[str]) -> DocumentedResponse:
        if not isinstance(spot.value, dict):
            self._notices.error(WRONG_VALUE, f"a response is {brief(spot.value)}, not an object", spot)
            return DocumentedResponse(status=status)
        media_type: str | None = None
        made: Mapping[str, Any] | None = None
        if not self._swagger:
            if found := self._content(spot, "output"):
                media_type, made = found.media_type, found.schema
        elif spot.value.get("schema") is not None:
            media_type = sent_type((preferred(produces) or [JSON])[0])
            made = self._schemas.read(spot.below("schema"), "output")
        description = spot.text("description")
        return DocumentedResponse(status=status, description=description, media_type=media_type, schema=made)
