"""Y820-Y824, Y890-Y894: rules for the configuration of a server and its HTTP face."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_IDENTITY: Final = Rule(
    ("Y820", "incomplete-identity", "SHOULD", "reading files"), "The identity of the server is incomplete."
)
NO_EFFECT: Final = Rule(
    ("Y821", "setting-without-effect", "SHOULD", "reading files"), "A setting has no effect on this server."
)
CONTRADICTION: Final = Rule(
    ("Y822", "contradicting-settings", "MUST", "reading files"), "Settings contradict each other."
)
DATA_SET: Final = Rule(("Y823", "unusable-data-set", "MUST", "AGIS 8.3"), "A data set cannot be used.")
PROCEDURE: Final = Rule(("Y824", "unusable-procedure", "MUST", "Tier 2 10.3"), "A procedure cannot be run.")
UNKNOWN_CATEGORY: Final = Rule(
    ("Y890", "unknown-service-category", "MUST", "reading files"),
    "A category of the service is not in the list of categories.",
)
WEB_ADDRESS: Final = Rule(
    ("Y891", "no-web-address", "MUST", "reading files"), "A setting of the HTTP face is not a valid web address."
)
UNLIMITED_ON_THE_WEB: Final = Rule(
    ("Y892", "unlimited-on-the-web", "SHOULD", "reading files"),
    "Endpoints are published on the web without a rate limit.",
)
PROXY_ADDRESS: Final = Rule(
    ("Y893", "no-network-address", "MUST", "reading files"), "A trusted proxy is not a valid IP address or network."
)
LANGUAGE_TAG: Final = Rule(
    ("Y894", "no-language-tag", "MUST", "reading files"), "A language of the service is not a valid BCP 47 tag."
)
