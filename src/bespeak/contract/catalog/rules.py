"""V551-V562: rules for catalog documents (AGTP-API 3.1, 4.2)."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_JSON: Final = Rule("V551", "catalog-malformed", "MUST", "AGTP-API 4.2")
MISSING_KEY: Final = Rule("V552", "catalog-missing-key", "MUST", "AGTP-API 4.2")
WRONG_TYPE: Final = Rule("V553", "catalog-wrong-value", "MUST", "AGTP-API 4.2")
BAD_NAME: Final = Rule("V554", "catalog-verb-name", "MUST", "AGTP-API 4.2")
UNKNOWN_CATEGORY: Final = Rule("V555", "catalog-unknown-category", "MUST", "AGTP-API 4.2")
UNKNOWN_VERB: Final = Rule("V556", "catalog-unknown-verb", "MUST", "AGTP-API 4.2")
BAD_VERSION: Final = Rule("V557", "catalog-version", "MUST", "AGTP-API 4.2")
FLOOR_INCOMPLETE: Final = Rule("V558", "catalog-floor-incomplete", "MUST", "AGTP-API 4.2")
LEGACY_SET: Final = Rule("V559", "catalog-legacy-verbs", "MUST", "AGTP-API 4.2")
UNKNOWN_KEY: Final = Rule("V560", "catalog-unknown-key", "SHOULD", "AGTP-API 4.2")
ODD_DEPRECATION: Final = Rule("V561", "catalog-odd-deprecation", "SHOULD", "AGTP-API 4.2")
UNREADABLE: Final = Rule("V562", "catalog-unreadable", "MUST", "AGTP-API 4.2")
