"""D160-D169: rules for OpenAPI descriptions."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_OPENAPI: Final = Rule("D160", "no-openapi-description", "MUST", "reading files")
BROKEN_REFERENCE: Final = Rule("D161", "reference-not-followed", "MUST", "reading files")
SCHEMA_CUT: Final = Rule("D162", "schema-cut", "SHOULD", "reading files")
SCHEMA_PART_DROPPED: Final = Rule("D163", "schema-part-left-out", "SHOULD", "reading files")
UNCLEAR_PARAMETER: Final = Rule("D164", "parameter-not-described", "SHOULD", "reading files")
NOT_IMPORTED: Final = Rule("D165", "part-not-imported", "style", "reading files")
DUPLICATE_OPERATION_ID: Final = Rule("D166", "operation-id-twice", "SHOULD", "reading files")
UNCLEAR_SERVER: Final = Rule("D167", "server-left-open", "SHOULD", "reading files")
UNCLEAR_BODY: Final = Rule("D168", "body-left-open", "SHOULD", "reading files")
UNUSABLE_SCHEME: Final = Rule("D169", "unusable-security-scheme", "MUST", "reading files")
