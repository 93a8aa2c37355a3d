"""The request body of an operation, in the one media type that is sent, and its documented responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from bespeak.documents.openapi.description import (
    JSON,
    MULTIPART,
    Body,
    DocumentedResponse,
    Encoding,
    default_schema,
    media_form,
    preferred,
    sent_type,
)
from bespeak.documents.openapi.document_text import Notices, Spot
from bespeak.documents.openapi.parameters import ParameterReader, read_encodings, without_place
from bespeak.documents.openapi.references import RefResolver
from bespeak.documents.openapi.rules import UNCLEAR_BODY, UNCLEAR_PARAMETER
from bespeak.documents.openapi.schema_conversion import Direction, SchemaReader
from bespeak.protocol.exchange.headers import FORM
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.rules import MISSING_KEY, WRONG_VALUE
from bespeak.text.reading.table import as_mapping

MAX_ANSWERS: Final = 100
_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|XX)|DEFAULT")
_BODYLESS: Final = frozenset({"GET", "HEAD", "TRACE"})
_FORMS: Final = ("form", "multipart")


class TypedContent(NamedTuple):
    """Content of a body or a response, in the media type that is sent."""

    media_type: str
    schema: dict[str, Any]
    other_types: tuple[str, ...]  # other media types that are offered
    spot: Spot  # place of the media type


class BodyReader:
    """Reads request bodies and responses of one description. What several operations share is read once."""

    def __init__(self, references: RefResolver, schemas: SchemaReader, notices: Notices, *, swagger: bool) -> None:
        self._references = references
        self._schemas = schemas
        self._notices = notices
        self._swagger = swagger
        self._bodies: dict[tuple[str, str], Body | None] = {}
        self._responses: dict[tuple[tuple[str, str], str, str], DocumentedResponse] = {}

    def read(self, operation: Spot, method: str) -> Body | None:
        given = operation.below("requestBody")
        if given.value is None:
            return None
        spot = self._references.follow(given)
        if spot is None:
            return Body(media_type=JSON, required=False, schema={})
        if method in _BODYLESS:
            # Some tools describe an empty form for every operation.
            schemas = (as_mapping(kind.below("schema").value) for _, kind in spot.below("content").entries())
            if any(schema and schema.get("properties") != {} for schema in schemas):
                self._notices.warning(UNCLEAR_BODY, f"a body of {method} has no meaning, and is left out", given)
            return None
        key = spot.key
        if key not in self._bodies:
            self._bodies[key] = self._body(spot)
        return self._bodies[key]

    def _body(self, spot: Spot) -> Body | None:
        found = self._content(spot, "input")
        if found is None:
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
        offered = preferred([name for name in names if not name.startswith("x-")])
        if not offered:
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
        spot = self._references.follow(given)
        if spot is None:
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
