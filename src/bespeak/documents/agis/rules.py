"""Rules of the first validation pass: the structure of an AGIS document (AGIS 8, 9.1, 10)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

MISSING_FIELD: Final = Rule(
    ("D120", "missing-field", "MUST", "AGIS 8.1, 9.1 pass 1"),
    "A document has agis, service, agtp, endpoints and vocabulary, an endpoint has method and path, and none is empty.",
)
WRONG_TYPE: Final = Rule(
    ("D121", "wrong-type", "MUST", "AGIS 10"),
    "Every field has the type that the JSON Schema of AGIS documents gives it.",
    fix="safe",
)
UNSUPPORTED_VERSION: Final = Rule(
    ("D122", "unsupported-version", "MUST", "AGIS 8.1"), 'agis is the string "1.0".', fix="safe"
)
ADDRESS: Final = Rule(
    ("D123", "agtp-address", "MUST", "AGIS 8.1"), "agtp is an address of the form agtp://host.", fix="unsafe"
)
ENDPOINTS_NOT_ARRAY: Final = Rule(
    ("D124", "endpoints-not-array", "MUST", "AGIS 8.1"),
    "endpoints is an array of definitions, each with its method and its path.",
)
EMPTY_ENDPOINTS: Final = Rule(
    ("D125", "empty-endpoints", "MUST", "AGIS 8.1"), "A document defines at least one endpoint."
)
UNKNOWN_FIELD: Final = Rule(
    ("D126", "unknown-field", "SHOULD", "AGIS 8, 10"),
    "A document has only keys that AGIS defines; your own keys start with x-.",
    fix="unsafe",
)
RECOMMENDED_FIELD: Final = Rule(
    ("D127", "missing-recommended-field", "SHOULD", "AGIS 8.1"),
    "A document states what the service is for and its version: description and version.",
)
NOT_AN_OBJECT: Final = Rule(
    ("D128", "not-an-object", "MUST", "AGIS 8.1"), "A document is one object (a mapping) with the fields of AGIS."
)
COMMENTS_LOST: Final = Rule(
    ("D129", "comments-would-be-lost", "MUST", "bespeak format"),
    "Formatting loses no comment: if one has no place in the new text, the file is left unchanged.",
)
