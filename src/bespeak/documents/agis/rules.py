"""Rules of the first validation pass: the structure of an AGIS document (AGIS 8, 9.1, 10)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

MISSING_FIELD: Final = Rule("D120", "missing-field", "MUST", "AGIS 8.1, 9.1 pass 1")
WRONG_TYPE: Final = Rule("D121", "wrong-type", "MUST", "AGIS 10", fix="safe")
UNSUPPORTED_VERSION: Final = Rule("D122", "unsupported-version", "MUST", "AGIS 8.1", fix="safe")
ADDRESS: Final = Rule("D123", "agtp-address", "MUST", "AGIS 8.1", fix="unsafe")
ENDPOINTS_NOT_ARRAY: Final = Rule("D124", "endpoints-not-array", "MUST", "AGIS 8.1")
EMPTY_ENDPOINTS: Final = Rule("D125", "empty-endpoints", "MUST", "AGIS 8.1")
UNKNOWN_FIELD: Final = Rule("D126", "unknown-field", "SHOULD", "AGIS 8, 10", fix="unsafe")
RECOMMENDED_FIELD: Final = Rule("D127", "missing-recommended-field", "SHOULD", "AGIS 8.1")
NOT_AN_OBJECT: Final = Rule("D128", "not-an-object", "MUST", "AGIS 8.1")
COMMENTS_LOST: Final = Rule("D129", "comments-would-be-lost", "MUST", "bespeak format")
