"""W910-W943: rules for live services, checked by `bespeak lint https://host`.

How a service serves its discovery documents (W910-W933), and whether they agree (W934-W943).
"""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

_DRAFT: Final = "AI-Discovery"

NO_DOCUMENT: Final = Rule(
    ("W910", "no-discovery-document", "SHOULD", f"{_DRAFT} 2.1"),
    "A service has a discovery document at /.well-known/ai.",
)
NOTHING: Final = Rule(
    ("W911", "nothing-to-discover", "MUST", f"{_DRAFT} 2.1"),
    "A service describes itself in at least one document: /.well-known/ai, AGIS or OpenAPI.",
)
PLAIN: Final = Rule(
    ("W912", "discovery-without-https", "MUST", f"{_DRAFT} 6.4"), "Discovery documents are served over HTTPS."
)
CERTIFICATE: Final = Rule(
    ("W913", "untrusted-certificate", "MUST", f"{_DRAFT} 6.4"),
    "The certificate is valid, for this host, and from a trusted authority.",
)
STATUS: Final = Rule(
    ("W914", "discovery-status", "MUST", f"{_DRAFT} 2.2"),
    "A discovery document is answered with 200, and a missing one with 404.",
)
CREDENTIALS: Final = Rule(
    ("W915", "discovery-needs-credentials", "MUST", f"{_DRAFT} 2.2"),
    "Discovery documents are public and need no credentials.",
)
MEDIA_TYPE: Final = Rule(
    ("W916", "discovery-content-type", "MUST", f"{_DRAFT} 2.3"),
    "The Content-Type of a document is its own: application/json for /.well-known/ai and agis.json.",
)
CHARSET: Final = Rule(
    ("W917", "discovery-charset", "SHOULD", f"{_DRAFT} 2.3"),
    "The Content-Type of a discovery document includes charset=utf-8.",
)
UTF8: Final = Rule(
    ("W918", "discovery-not-utf8", "MUST", f"{_DRAFT} 2.4"), "A document is UTF-8, without a byte order mark."
)
NOT_KEPT: Final = Rule(
    ("W919", "discovery-not-kept", "SHOULD", f"{_DRAFT} 4.2"),
    "Cache-Control allows shared caches to store the document.",
)
SHORT: Final = Rule(
    ("W920", "discovery-kept-shortly", "SHOULD", f"{_DRAFT} 4.2"),
    "The document may be cached for at least an hour; a day is recommended.",
)
VALIDATOR: Final = Rule(
    ("W921", "discovery-without-validator", "SHOULD", "RFC 9110 8.8"), "The answer has an ETag or a Last-Modified."
)
HEAD: Final = Rule(("W922", "head-differs", "SHOULD", "RFC 9110 9.3.2"), "HEAD is answered like GET, without the body.")
SLOW: Final = Rule(
    ("W923", "slow-discovery", "SHOULD", f"{_DRAFT} 2.2"), "A document is answered within three seconds."
)
REDIRECTS: Final = Rule(
    ("W924", "too-many-redirects", "MUST", f"{_DRAFT} 2.2"),
    "At most five redirects lead to a document, each to an allowed address.",
)
DOWNGRADE: Final = Rule(("W925", "redirect-to-http", "MUST", f"{_DRAFT} 2.2"), "No redirect leads from https to http.")
ELSEWHERE: Final = Rule(
    ("W926", "redirect-elsewhere", "SHOULD", f"{_DRAFT} 3.3"),
    "A discovery document is on its own host, not on another one that a redirect leads to.",
)
TOO_LARGE: Final = Rule(
    ("W927", "discovery-too-large", "MUST", f"{_DRAFT} 4.5"),
    "A document is at most 256,000 bytes, also when decompressed.",
)
ENCODING: Final = Rule(
    ("W928", "discovery-encoding", "MUST", "RFC 9110 12.5.3"),
    "A body has no encoding that the client did not ask for, and can be decoded.",
)
BROKEN: Final = Rule(
    ("W929", "broken-answer", "MUST", "RFC 9110 6"),
    "An answer is complete, valid HTTP, and arrives within ten seconds.",
)
ALIAS: Final = Rule(
    ("W930", "alias-differs", "MUST", f"{_DRAFT} 2.1"),
    "/ai, if it is served, is the same document as /.well-known/ai, byte for byte.",
)
SOFT_404: Final = Rule(
    ("W931", "soft-404", "SHOULD", f"{_DRAFT} 2.2"), "A path that does not exist is answered with 404."
)
ROBOTS: Final = Rule(
    ("W932", "robots-against-discovery", "MUST", "RFC 9309 2.2"),
    "robots.txt allows programs to fetch the discovery documents.",
)
CORS: Final = Rule(
    ("W933", "discovery-without-cors", "style", "Fetch 3.2"),
    "Pages of other sites may read the documents: Access-Control-Allow-Origin is *.",
)


ADDRESSES: Final = Rule(
    ("W934", "agtp-addresses-differ", "SHOULD", "AGIS 11.1"),
    "agis.json, the AGIS document and /.well-known/agtp name the same host for AGTP.",
)
OVER_HTTP: Final = Rule(
    ("W935", "described-over-http", "MUST", f"{_DRAFT} 6.4"),
    "An OpenAPI description has no http:// address for operations.",
)
NAMES: Final = Rule(
    ("W936", "service-names-differ", "SHOULD", f"{_DRAFT} 3.2"), "The documents of one service give it the same name."
)
NOT_IN_OPENAPI: Final = Rule(
    ("W937", "capability-not-in-openapi", "SHOULD", f"{_DRAFT} 3.3"),
    "Every capability on the host itself is an operation of its OpenAPI description.",
)
METHODS: Final = Rule(
    ("W938", "summary-methods-differ", "MUST", "AGIS 11.1"), "The methods in agis.json are those of the AGIS document."
)
AUTH: Final = Rule(
    ("W939", "auth-differs", "SHOULD", f"{_DRAFT} 3.4"), "/.well-known/ai and OpenAPI agree about authentication."
)
NOT_IN_AGIS: Final = Rule(
    ("W940", "capability-not-in-agis", "SHOULD", "AGIS 11"),
    "Every capability of the form /path:verb is an endpoint of the AGIS document.",
)
LEADS_NOWHERE: Final = Rule(
    ("W941", "summary-leads-nowhere", "MUST", "AGIS 11.1"),
    "agis.json names the address of the AGIS document, and the document is there.",
)
INCOMPLETE: Final = Rule(
    ("W942", "summary-incomplete", "MUST", "AGIS 11.1"),
    "agis.json has every member of AGIS 11.1, with null for what the service does not state.",
)
CUT: Final = Rule(
    ("W943", "examination-cut", "style", "bespeak"),
    "All questions of an examination can be asked and compared within its time.",
)
