"""Rules of the first validation pass: the structure of an AGIS document (AGIS 8, 9.1, 10)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

MISSING_FIELD: Final = Rule(
    ("D120", "missing-field", "MUST", "AGIS 8.1, 9.1 pass 1"),
    "A document has agis, service, agtp, endpoints and vocabulary, an endpoint has method and path, and none is empty.",
    "Without them an agent knows neither what the service is nor where to reach it.",
    'agis: "1.0"\nservice: ""\n',
    'agis: "1.0"\nservice: "Acme Rooms"\n',
)
WRONG_TYPE: Final = Rule(
    ("D121", "wrong-type", "MUST", "AGIS 10"),
    "Every field has the type that the JSON Schema of AGIS documents gives it.",
    "Readers ignore a value of another type, or interpret it differently.",
    "version: 1.20\n",
    'version: "1.20"\n',
    "safe",
)
UNSUPPORTED_VERSION: Final = Rule(
    ("D122", "unsupported-version", "MUST", "AGIS 8.1"),
    'agis is the string "1.0".',
    "A reader must know which version of the rules the document follows.",
    "agis: 1.0\n",
    'agis: "1.0"\n',
    "safe",
)
ADDRESS: Final = Rule(
    ("D123", "agtp-address", "MUST", "AGIS 8.1"),
    "agtp is an address of the form agtp://host.",
    "Agents find the service at this address; no other scheme reaches it over AGTP.",
    'agtp: "https://rooms.acme.example"\n',
    'agtp: "agtp://rooms.acme.example"\n',
    "unsafe",
)
ENDPOINTS_NOT_ARRAY: Final = Rule(
    ("D124", "endpoints-not-array", "MUST", "AGIS 8.1"),
    "endpoints is an array of definitions, each with its method and its path.",
    "Other readers expect an array and find no endpoint.",
    'endpoints:\n  "BOOK /room":\n    semantic: {}\n',
    "endpoints:\n  - method: BOOK\n    path: /room\n    semantic: {}\n",
)
EMPTY_ENDPOINTS: Final = Rule(
    ("D125", "empty-endpoints", "MUST", "AGIS 8.1"),
    "A document defines at least one endpoint.",
    "A service without endpoints has nothing to publish.",
    "endpoints: []\n",
    "endpoints:\n  - method: FIND\n    path: /room\n",
)
UNKNOWN_FIELD: Final = Rule(
    ("D126", "unknown-field", "SHOULD", "AGIS 8, 10"),
    "A document has only keys that AGIS defines; your own keys start with x-.",
    "Readers ignore the key, and most often it is a misspelling of another one.",
    "semantic:\n  impact: reversible\n",
    "semantic:\n  impact_tier: reversible\n",
    "unsafe",
)
RECOMMENDED_FIELD: Final = Rule(
    ("D127", "missing-recommended-field", "SHOULD", "AGIS 8.1"),
    "A document states what the service is for and its version: description and version.",
    "People and agents choose between services by the description, and notice changes by the version.",
    'agis: "1.0"\nservice: "Acme Rooms"\n',
    'agis: "1.0"\nservice: "Acme Rooms"\ndescription: "Rooms for a night or a year."\nversion: "1.2.0"\n',
)
NOT_AN_OBJECT: Final = Rule(
    ("D128", "not-an-object", "MUST", "AGIS 8.1"),
    "A document is one object (a mapping) with the fields of AGIS.",
    "A list or a single value cannot hold them.",
    '- agis: "1.0"\n',
    'agis: "1.0"\n',
)
COMMENTS_LOST: Final = Rule(
    ("D129", "comments-would-be-lost", "MUST", "bespeak format"),
    "Formatting loses no comment: if one has no place in the new text, the file is left unchanged.",
    "Comments are written for people, and a formatter must not discard them.",
    "BOOK /room {  # the only way in\n}\n",
    "- method: BOOK  # the only way in\n  path: /room\n",
)
