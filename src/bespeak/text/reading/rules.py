"""D101-D110, D199: rules for the text, the keys and the values of any document."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREADABLE: Final = Rule(
    ("D101", "unreadable-file", "MUST", "reading files"),
    "The file cannot be read: it is missing, not permitted, too large or not UTF-8.",
)
MALFORMED: Final = Rule(
    ("D102", "malformed-text", "MUST", "reading files"),
    "The text is not well-formed YAML, JSON, TOML or brace notation.",
)
MISSING_KEY: Final = Rule(("D103", "missing-key", "MUST", "reading files"), "A required key is missing.")
WRONG_VALUE: Final = Rule(("D104", "wrong-value", "MUST", "reading files"), "A value has the wrong type or form.")
UNKNOWN_KEY: Final = Rule(("D105", "unknown-key", "MUST", "reading files"), "The key is not known.", fix="unsafe")
WRONG_CHOICE: Final = Rule(
    ("D106", "wrong-choice", "MUST", "reading files"), "A value is not one of those that the key allows.", fix="unsafe"
)
EARLIER_SPELLING: Final = Rule(
    ("D107", "earlier-spelling", "SHOULD", "reading files"),
    "The key is spelled as in an earlier release of the format.",
    fix="safe",
)
DUPLICATE: Final = Rule(("D109", "said-twice", "MUST", "reading files"), "The same thing is declared twice.")
NOT_JSON: Final = Rule(
    ("D110", "not-json", "MUST", "reading files"), "A schema contains a value that JSON cannot express."
)
TOO_MANY_FINDINGS: Final = Rule(
    ("D199", "too-many-findings", "MUST", "reading files"), "The document has more findings than are shown."
)
