"""The documented responses of an operation."""

from __future__ import annotations

import re
from typing import Final

from bespeak.documents.openapi.bodies import BodyReader
from bespeak.documents.openapi.description import DocumentedResponse
from bespeak.documents.openapi.media_types import JSON, preferred, sent_type
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.references import References
from bespeak.documents.openapi.schema_assembly import SchemaReader
from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import MISSING_KEY, WRONG_VALUE

MAX_ANSWERS: Final = 100

_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|XX)|DEFAULT")


class AnswerReader:
    """Reads the responses of one description. A response that several operations share is read once."""

    def __init__(
        self, references: References, schemas: SchemaReader, bodies: BodyReader, notices: Notices, *, swagger: bool
    ) -> None:
        self._references = references
        self._schemas = schemas
        self._bodies = bodies
        self._notices = notices
        self._swagger = swagger
        self._known: dict[tuple[tuple[str, str], str, str], DocumentedResponse] = {}

    def read(self, operation: Spot, produces: list[str]) -> tuple[DocumentedResponse, ...]:
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
        if key not in self._known:
            self._known[key] = self._read(status, spot, produces)
        return self._known[key]

    def _read(self, status: str, spot: Spot, produces: list[str]) -> DocumentedResponse:
        if not isinstance(spot.value, dict):
            self._notices.error(WRONG_VALUE, f"a response is {brief(spot.value)}, not an object", spot)
            return DocumentedResponse(status=status)
        description = spot.text("description")
        if self._swagger:
            schema = spot.below("schema")
            if schema.value is None:
                return DocumentedResponse(status=status, description=description)
            media_type = sent_type((preferred(produces) or [JSON])[0])
            made = self._schemas.read(schema, "output")
            return DocumentedResponse(status=status, description=description, media_type=media_type, schema=made)
        found = self._bodies.content(spot.below("content"), "output")
        if found is None:
            return DocumentedResponse(status=status, description=description)
        return DocumentedResponse(
            status=status, description=description, media_type=found.media_type, schema=found.schema
        )
