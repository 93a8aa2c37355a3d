"""V551-V562: rules for catalog documents (AGTP-API 3.1, 4.2)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_JSON: Final = Rule(("V551", "catalog-malformed", "MUST", "AGTP-API 4.2"), "The catalog is not well-formed JSON.")
MISSING_KEY: Final = Rule(("V552", "catalog-missing-key", "MUST", "AGTP-API 4.2"), "A required key is missing.")
WRONG_TYPE: Final = Rule(
    ("V553", "catalog-wrong-value", "MUST", "AGTP-API 4.2"), "A value has the wrong type or is empty."
)
BAD_NAME: Final = Rule(
    ("V554", "catalog-verb-name", "MUST", "AGTP-API 4.2"),
    "A verb is not 3 to 32 capital letters, or is an HTTP method.",
)
UNKNOWN_CATEGORY: Final = Rule(
    ("V555", "catalog-unknown-category", "MUST", "AGTP-API 4.2"),
    "A verb has a category that the document does not define.",
)
UNKNOWN_VERB: Final = Rule(
    ("V556", "catalog-unknown-verb", "MUST", "AGTP-API 4.2"),
    "A successor, a preferred or an embedded verb is not in the catalog.",
)
BAD_VERSION: Final = Rule(("V557", "catalog-version", "MUST", "AGTP-API 4.2"), "A version is not MAJOR.MINOR.PATCH.")
FLOOR_INCOMPLETE: Final = Rule(
    ("V558", "catalog-floor-incomplete", "MUST", "AGTP-API 4.2"), "A floor method is not embedded."
)
LEGACY_SET: Final = Rule(
    ("V559", "catalog-legacy-verbs", "MUST", "AGTP-API 4.2"), "The legacy verbs are not the five HTTP verbs."
)
UNKNOWN_KEY: Final = Rule(
    ("V560", "catalog-unknown-key", "SHOULD", "AGTP-API 4.2"), "A key is not known, or two keys mean the same."
)
ODD_DEPRECATION: Final = Rule(
    ("V561", "catalog-odd-deprecation", "SHOULD", "AGTP-API 4.2"),
    "A deprecation has no effect, or contradicts the version of the catalog.",
)
UNREADABLE: Final = Rule(
    ("V562", "catalog-unreadable", "MUST", "AGTP-API 4.2"), "The catalog file cannot be read, or is too large."
)
