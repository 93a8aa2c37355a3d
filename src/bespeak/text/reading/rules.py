"""D101-D110, D199: rules for the text, the keys and the values of any document."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREADABLE: Final = Rule("D101", "unreadable-file", "MUST", "reading files")
MALFORMED: Final = Rule("D102", "malformed-text", "MUST", "reading files")
MISSING_KEY: Final = Rule("D103", "missing-key", "MUST", "reading files")
WRONG_VALUE: Final = Rule("D104", "wrong-value", "MUST", "reading files")
UNKNOWN_KEY: Final = Rule("D105", "unknown-key", "MUST", "reading files", fix="unsafe")
WRONG_CHOICE: Final = Rule("D106", "wrong-choice", "MUST", "reading files", fix="unsafe")
EARLIER_SPELLING: Final = Rule("D107", "earlier-spelling", "SHOULD", "reading files", fix="safe")
DUPLICATE: Final = Rule("D109", "said-twice", "MUST", "reading files")
NOT_JSON: Final = Rule("D110", "not-json", "MUST", "reading files")
TOO_MANY_FINDINGS: Final = Rule("D199", "too-many-findings", "MUST", "reading files")
