"""Y820-Y824, Y890-Y894: rules for the configuration of a server and its HTTP face."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_IDENTITY: Final = Rule("Y820", "incomplete-identity", "SHOULD", "reading files")
NO_EFFECT: Final = Rule("Y821", "setting-without-effect", "SHOULD", "reading files")
CONTRADICTION: Final = Rule("Y822", "contradicting-settings", "MUST", "reading files")
DATA_SET: Final = Rule("Y823", "unusable-data-set", "MUST", "AGIS 8.3")
PROCEDURE: Final = Rule("Y824", "unusable-procedure", "MUST", "Tier 2 10.3")
UNKNOWN_CATEGORY: Final = Rule("Y890", "unknown-service-category", "MUST", "reading files")
WEB_ADDRESS: Final = Rule("Y891", "no-web-address", "MUST", "reading files")
UNLIMITED_ON_THE_WEB: Final = Rule("Y892", "unlimited-on-the-web", "SHOULD", "reading files")
PROXY_ADDRESS: Final = Rule("Y893", "no-network-address", "MUST", "reading files")
LANGUAGE_TAG: Final = Rule("Y894", "no-language-tag", "MUST", "reading files")
