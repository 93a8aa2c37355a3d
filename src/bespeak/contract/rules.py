"""Y804, Y880, Y881: rules for the policies, costs and rate limits of a contract, in any notation."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

LEGACY_SET: Final = Rule("Y804", "legacy-verbs", "MUST", "AGTP-API 9.4")
COST: Final = Rule("Y880", "cost-amount", "MUST", "AGTP core 7.7")
RATE_LIMIT: Final = Rule("Y881", "rate-limit", "MUST", "reading files")
