"""D160-D169: rules for OpenAPI descriptions."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_OPENAPI: Final = Rule(
    ("D160", "no-openapi-description", "MUST", "reading files"), "The document is not a supported OpenAPI description."
)
BROKEN_REFERENCE: Final = Rule(
    ("D161", "reference-not-followed", "MUST", "reading files"),
    "A reference in a description is broken, circular or to a remote document.",
)
SCHEMA_CUT: Final = Rule(
    ("D162", "schema-cut", "SHOULD", "reading files"),
    "A schema of a description is too large for one endpoint, and is cut.",
)
SCHEMA_PART_DROPPED: Final = Rule(
    ("D163", "schema-part-left-out", "SHOULD", "reading files"),
    "A part of a schema in a description cannot be used, and is left out.",
)
UNCLEAR_PARAMETER: Final = Rule(
    ("D164", "parameter-not-described", "SHOULD", "reading files"),
    "The description of a parameter is incomplete or not supported.",
)
NOT_IMPORTED: Final = Rule(
    ("D165", "part-not-imported", "style", "reading files"), "A part of a description is not imported."
)
DUPLICATE_OPERATION_ID: Final = Rule(
    ("D166", "operation-id-twice", "SHOULD", "reading files"),
    "Two operations of a description have the same operationId.",
)
UNCLEAR_SERVER: Final = Rule(
    ("D167", "server-left-open", "SHOULD", "reading files"),
    "The server address of a description is missing or ambiguous.",
)
UNCLEAR_BODY: Final = Rule(
    ("D168", "body-left-open", "SHOULD", "reading files"),
    "The media type or the schema of a body is missing or ambiguous.",
)
UNUSABLE_SCHEME: Final = Rule(
    ("D169", "unusable-security-scheme", "MUST", "reading files"), "A security scheme of a description cannot be used."
)
