"""W910-W943: rules for live services: how discovery documents are served, and from W934 on whether they agree."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

_DRAFT: Final = "AI-Discovery"

NO_DOCUMENT: Final = Rule("W910", "no-discovery-document", "SHOULD", f"{_DRAFT} 2.1")
NOTHING: Final = Rule("W911", "nothing-to-discover", "MUST", f"{_DRAFT} 2.1")
PLAIN: Final = Rule("W912", "discovery-without-https", "MUST", f"{_DRAFT} 6.4")
CERTIFICATE: Final = Rule("W913", "untrusted-certificate", "MUST", f"{_DRAFT} 6.4")
STATUS: Final = Rule("W914", "discovery-status", "MUST", f"{_DRAFT} 2.2")
CREDENTIALS: Final = Rule("W915", "discovery-needs-credentials", "MUST", f"{_DRAFT} 2.2")
MEDIA_TYPE: Final = Rule("W916", "discovery-content-type", "MUST", f"{_DRAFT} 2.3")
CHARSET: Final = Rule("W917", "discovery-charset", "SHOULD", f"{_DRAFT} 2.3")
UTF8: Final = Rule("W918", "discovery-not-utf8", "MUST", f"{_DRAFT} 2.4")
NOT_KEPT: Final = Rule("W919", "discovery-not-kept", "SHOULD", f"{_DRAFT} 4.2")
SHORT: Final = Rule("W920", "discovery-kept-shortly", "SHOULD", f"{_DRAFT} 4.2")
VALIDATOR: Final = Rule("W921", "discovery-without-validator", "SHOULD", "RFC 9110 8.8")
HEAD: Final = Rule("W922", "head-differs", "SHOULD", "RFC 9110 9.3.2")
SLOW: Final = Rule("W923", "slow-discovery", "SHOULD", f"{_DRAFT} 2.2")
REDIRECTS: Final = Rule("W924", "too-many-redirects", "MUST", f"{_DRAFT} 2.2")
DOWNGRADE: Final = Rule("W925", "redirect-to-http", "MUST", f"{_DRAFT} 2.2")
ELSEWHERE: Final = Rule("W926", "redirect-elsewhere", "SHOULD", f"{_DRAFT} 3.3")
TOO_LARGE: Final = Rule("W927", "discovery-too-large", "MUST", f"{_DRAFT} 4.5")
ENCODING: Final = Rule("W928", "discovery-encoding", "MUST", "RFC 9110 12.5.3")
BROKEN: Final = Rule("W929", "broken-answer", "MUST", "RFC 9110 6")
ALIAS: Final = Rule("W930", "alias-differs", "MUST", f"{_DRAFT} 2.1")
SOFT_404: Final = Rule("W931", "soft-404", "SHOULD", f"{_DRAFT} 2.2")
ROBOTS: Final = Rule("W932", "robots-against-discovery", "MUST", "RFC 9309 2.2")
CORS: Final = Rule("W933", "discovery-without-cors", "style", "Fetch 3.2")

ADDRESSES: Final = Rule("W934", "agtp-addresses-differ", "SHOULD", "AGIS 11.1")
OVER_HTTP: Final = Rule("W935", "described-over-http", "MUST", f"{_DRAFT} 6.4")
NAMES: Final = Rule("W936", "service-names-differ", "SHOULD", f"{_DRAFT} 3.2")
NOT_IN_OPENAPI: Final = Rule("W937", "capability-not-in-openapi", "SHOULD", f"{_DRAFT} 3.3")
METHODS: Final = Rule("W938", "summary-methods-differ", "MUST", "AGIS 11.1")
AUTH: Final = Rule("W939", "auth-differs", "SHOULD", f"{_DRAFT} 3.4")
NOT_IN_AGIS: Final = Rule("W940", "capability-not-in-agis", "SHOULD", "AGIS 11")
LEADS_NOWHERE: Final = Rule("W941", "summary-leads-nowhere", "MUST", "AGIS 11.1")
INCOMPLETE: Final = Rule("W942", "summary-incomplete", "MUST", "AGIS 11.1")
CUT: Final = Rule("W943", "examination-cut", "style", "bespeak")
