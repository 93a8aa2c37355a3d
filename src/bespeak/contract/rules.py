"""Y804, Y880, Y881: rules for the policies, costs and rate limits of a contract, in any notation."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

LEGACY_SET: Final = Rule(
    ("Y804", "legacy-verbs", "MUST", "AGTP-API 9.4"),
    "legacy lists only the five HTTP verbs.",
    why="Only these five map to a verb of the catalog. List other methods in `custom`.",
    bad='[policies.methods]\nlegacy = ["GET", "HEAD"]\n',
    good='[policies.methods]\nlegacy = ["GET", "POST"]\n',
    notation="toml",
)
COST: Final = Rule(
    ("Y880", "cost-amount", "MUST", "AGTP core 7.7"),
    "A cost is an amount in one of the registered units.",
    why="Callers limit what they spend in these units. Write a non-negative amount in a registered unit, such as USD.",
    bad='[endpoint.cost]\nUSD = "2 cents"\n',
    good='[endpoint.cost]\nUSD = "0.02"\ntokens = 500\n',
    notation="toml",
)
RATE_LIMIT: Final = Rule(
    ("Y881", "rate-limit", "MUST", "reading files"),
    "A rate limit is a count per unit of time.",
    why="A limit that cannot be parsed has no effect. Write a count per s, min, h or day, and a burst if you want one.",
    bad='[limits.rate]\nagent = "100 per second"\n',
    good='[limits.rate]\nagent = "100/s burst 200"\n',
    notation="toml",
)
