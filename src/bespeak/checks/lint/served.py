"""W910-W943: rules for live services, checked by `bespeak lint https://host`.

How a service serves its discovery documents (W910-W933), and whether they agree (W934-W943).
"""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

_DRAFT: Final = "AI-Discovery"
_GOOD: Final = "HTTP/1.1 200 OK\nContent-Type: application/json; charset=utf-8\n"

NO_DOCUMENT: Final = Rule(
    ("W910", "no-discovery-document", "SHOULD", f"{_DRAFT} 2.1"),
    "A service has a discovery document at /.well-known/ai.",
    why="Agents look there first, and an agent that finds nothing may not try again for a day.",
    bad="GET /.well-known/ai\n\nHTTP/1.1 404 Not Found\n",
    good=f"GET /.well-known/ai\n\n{_GOOD}",
)
NOTHING: Final = Rule(
    ("W911", "nothing-to-discover", "MUST", f"{_DRAFT} 2.1"),
    "A service describes itself in at least one document: /.well-known/ai, AGIS or OpenAPI.",
    why="Without any of them an agent cannot know what to call. `bespeak serve --http` publishes all of them.",
)
PLAIN: Final = Rule(
    ("W912", "discovery-without-https", "MUST", f"{_DRAFT} 6.4"),
    "Discovery documents are served over HTTPS.",
    why=(
        "Over plain HTTP anybody on the network path can answer, and agents must not ask. On the local machine it is "
        "acceptable, and reported as a reminder."
    ),
)
CERTIFICATE: Final = Rule(
    ("W913", "untrusted-certificate", "MUST", f"{_DRAFT} 6.4"),
    "The certificate is valid, for this host, and from a trusted authority.",
    why="Agents do not use a host whose certificate is not valid: the answer could come from anybody.",
)
STATUS: Final = Rule(
    ("W914", "discovery-status", "MUST", f"{_DRAFT} 2.2"),
    "A discovery document is answered with 200, and a missing one with 404.",
    why="Agents read an answer only if its status is 200. After 404 they stop; after 5xx they retry in vain.",
    bad="GET /.well-known/ai\n\nHTTP/1.1 500 Internal Server Error\n",
    good=f"GET /.well-known/ai\n\n{_GOOD}",
)
CREDENTIALS: Final = Rule(
    ("W915", "discovery-needs-credentials", "MUST", f"{_DRAFT} 2.2"),
    "Discovery documents are public and need no credentials.",
    why="The document itself says how to authenticate, so an agent that needs a credential to read it can never begin.",
    bad="GET /.well-known/ai\n\nHTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer\n",
    good=f"GET /.well-known/ai\n\n{_GOOD}",
)
MEDIA_TYPE: Final = Rule(
    ("W916", "discovery-content-type", "MUST", f"{_DRAFT} 2.3"),
    "The Content-Type of a document is its own: application/json for /.well-known/ai and agis.json.",
    why="Agents parse an answer only if its Content-Type is JSON.",
    bad="HTTP/1.1 200 OK\nContent-Type: text/html\n",
    good=_GOOD,
)
CHARSET: Final = Rule(
    ("W917", "discovery-charset", "SHOULD", f"{_DRAFT} 2.3"),
    "The Content-Type of a discovery document includes charset=utf-8.",
    why="Programs that do not know JSON guess another encoding and garble names in other scripts.",
    bad="HTTP/1.1 200 OK\nContent-Type: application/json\n",
    good=_GOOD,
)
UTF8: Final = Rule(
    ("W918", "discovery-not-utf8", "MUST", f"{_DRAFT} 2.4"),
    "A document is UTF-8, without a byte order mark.",
    why="Strict JSON parsers refuse other encodings, and a byte order mark before the first brace.",
)
NOT_KEPT: Final = Rule(
    ("W919", "discovery-not-kept", "SHOULD", f"{_DRAFT} 4.2"),
    "Cache-Control allows shared caches to store the document.",
    why=(
        "Otherwise every agent fetches it again for each task, and caches on the way, such as a content delivery "
        "network, cannot help."
    ),
    bad="HTTP/1.1 200 OK\nCache-Control: private, no-store\n",
    good="HTTP/1.1 200 OK\nCache-Control: public, max-age=86400\n",
)
SHORT: Final = Rule(
    ("W920", "discovery-kept-shortly", "SHOULD", f"{_DRAFT} 4.2"),
    "The document may be cached for at least an hour; a day is recommended.",
    why="A document that is fetched again every few minutes costs the service and slows down the agents.",
    bad="HTTP/1.1 200 OK\nCache-Control: public, max-age=60\n",
    good="HTTP/1.1 200 OK\nCache-Control: public, max-age=86400\n",
)
VALIDATOR: Final = Rule(
    ("W921", "discovery-without-validator", "SHOULD", "RFC 9110 8.8"),
    "The answer has an ETag or a Last-Modified.",
    why="With one of them a cached document is confirmed by an empty 304; without, it is sent again in full.",
    bad="HTTP/1.1 200 OK\nCache-Control: public, max-age=86400\n",
    good='HTTP/1.1 200 OK\nCache-Control: public, max-age=86400\nETag: "5cd43181"\n',
)
HEAD: Final = Rule(
    ("W922", "head-differs", "SHOULD", "RFC 9110 9.3.2"),
    "HEAD is answered like GET, without the body.",
    why="Directories and caches use HEAD to check whether a document exists and has changed.",
    bad="HEAD /.well-known/ai\n\nHTTP/1.1 405 Method Not Allowed\n",
    good=f"HEAD /.well-known/ai\n\n{_GOOD}",
)
SLOW: Final = Rule(
    ("W923", "slow-discovery", "SHOULD", f"{_DRAFT} 2.2"),
    "A document is answered within three seconds.",
    why="Agents wait for it before they do anything, and may give up after ten seconds. Serve it from memory.",
)
REDIRECTS: Final = Rule(
    ("W924", "too-many-redirects", "MUST", f"{_DRAFT} 2.2"),
    "At most five redirects lead to a document, each to an allowed address.",
    why="Agents follow five redirects and then stop; each one costs a round trip.",
)
DOWNGRADE: Final = Rule(
    ("W925", "redirect-to-http", "MUST", f"{_DRAFT} 2.2"),
    "No redirect leads from https to http.",
    why="Agents must not follow it: over http anybody could answer.",
    bad="HTTP/1.1 301 Moved Permanently\nLocation: http://flights.example/ai.json\n",
    good="HTTP/1.1 301 Moved Permanently\nLocation: https://flights.example/ai.json\n",
)
ELSEWHERE: Final = Rule(
    ("W926", "redirect-elsewhere", "SHOULD", f"{_DRAFT} 3.3"),
    "A discovery document is on its own host, not on another one that a redirect leads to.",
    why=(
        "The paths in a document are relative to its final address: after a redirect to another host, agents look for "
        "every capability there."
    ),
    bad="HTTP/1.1 302 Found\nLocation: https://files.example/ai.json\n",
    good=_GOOD,
)
TOO_LARGE: Final = Rule(
    ("W927", "discovery-too-large", "MUST", f"{_DRAFT} 4.5"),
    "A document is at most 256,000 bytes, also when decompressed.",
    why="Agents refuse a larger document, even if it is small while compressed. Split the service.",
)
ENCODING: Final = Rule(
    ("W928", "discovery-encoding", "MUST", "RFC 9110 12.5.3"),
    "A body has no encoding that the client did not ask for, and can be decoded.",
    why="A client that asks for no encoding may not support any, and a body that cannot be decoded is useless.",
    bad="GET /.well-known/ai\nAccept-Encoding: identity\n\nHTTP/1.1 200 OK\nContent-Encoding: br\n",
    good=f"GET /.well-known/ai\nAccept-Encoding: identity\n\n{_GOOD}",
)
BROKEN: Final = Rule(
    ("W929", "broken-answer", "MUST", "RFC 9110 6"),
    "An answer is complete, valid HTTP, and arrives within ten seconds.",
    why="Agents discard a document that does not arrive completely.",
)
ALIAS: Final = Rule(
    ("W930", "alias-differs", "MUST", f"{_DRAFT} 2.1"),
    "/ai, if it is served, is the same document as /.well-known/ai, byte for byte.",
    why="Older tools read /ai. If the two documents differ, one service looks like two.",
)
SOFT_404: Final = Rule(
    ("W931", "soft-404", "SHOULD", f"{_DRAFT} 2.2"),
    "A path that does not exist is answered with 404.",
    why=(
        "A host that answers every path with 200 and a page for people seems to have every document, and each of them "
        "is broken."
    ),
    bad="GET /no/such/path\n\nHTTP/1.1 200 OK\nContent-Type: text/html\n",
    good="GET /no/such/path\n\nHTTP/1.1 404 Not Found\n",
)
ROBOTS: Final = Rule(
    ("W932", "robots-against-discovery", "MUST", "RFC 9309 2.2"),
    "robots.txt allows programs to fetch the discovery documents.",
    why="Agents must follow robots.txt, and never see a document that it disallows. Allow /.well-known/.",
    bad="GET /robots.txt\n\nUser-agent: *\nDisallow: /\n",
    good="GET /robots.txt\n\nUser-agent: *\nAllow: /.well-known/\nDisallow: /\n",
)
CORS: Final = Rule(
    ("W933", "discovery-without-cors", "style", "Fetch 3.2"),
    "Pages of other sites may read the documents: Access-Control-Allow-Origin is *.",
    why="Without this header, agents that run in a browser cannot read a public document.",
    bad=_GOOD,
    good=f"{_GOOD}Access-Control-Allow-Origin: *\n",
)


ADDRESSES: Final = Rule(
    ("W934", "agtp-addresses-differ", "SHOULD", "AGIS 11.1"),
    "agis.json, the AGIS document and /.well-known/agtp name the same host for AGTP.",
    why="An agent that switches from HTTP to AGTP reaches another service, or none.",
)
OVER_HTTP: Final = Rule(
    ("W935", "described-over-http", "MUST", f"{_DRAFT} 6.4"),
    "An OpenAPI description has no http:// address for operations.",
    why="Agents must not call over plain HTTP, where anybody on the network path can read a credential.",
    bad='{"servers": [{"url": "http://flights.example/api"}]}\n',
    good='{"servers": [{"url": "https://flights.example/api"}]}\n',
)
NAMES: Final = Rule(
    ("W936", "service-names-differ", "SHOULD", f"{_DRAFT} 3.2"),
    "The documents of one service give it the same name.",
    why="Directories that read two of the documents list two services.",
)
NOT_IN_OPENAPI: Final = Rule(
    ("W937", "capability-not-in-openapi", "SHOULD", f"{_DRAFT} 3.3"),
    "Every capability on the host itself is an operation of its OpenAPI description.",
    why=(
        "An agent that looks up the schema of a call finds nothing, or the document names a capability that no longer "
        "exists."
    ),
)
METHODS: Final = Rule(
    ("W938", "summary-methods-differ", "MUST", "AGIS 11.1"),
    "The methods in agis.json are those of the AGIS document.",
    why="Agents choose a service by the summary and call it by the document.",
)
AUTH: Final = Rule(
    ("W939", "auth-differs", "SHOULD", f"{_DRAFT} 3.4"),
    "/.well-known/ai and OpenAPI agree about authentication.",
    why="An agent that was told to send no credential is refused, or sends one that is ignored.",
)
NOT_IN_AGIS: Final = Rule(
    ("W940", "capability-not-in-agis", "SHOULD", "AGIS 11"),
    "Every capability of the form /path:verb is an endpoint of the AGIS document.",
    why="An agent that reads intent and impact before it acts finds neither for this capability.",
)
LEADS_NOWHERE: Final = Rule(
    ("W941", "summary-leads-nowhere", "MUST", "AGIS 11.1"),
    "agis.json names the address of the AGIS document, and the document is there.",
    why="The summary exists to lead to the document; without the document it is useless.",
)
INCOMPLETE: Final = Rule(
    ("W942", "summary-incomplete", "MUST", "AGIS 11.1"),
    "agis.json has every member of AGIS 11.1, with null for what the service does not state.",
    why="Readers of the summary rely on its members, and fail on a missing one.",
)
CUT: Final = Rule(
    ("W943", "examination-cut", "style", "bespeak"),
    "All questions of an examination can be asked and compared within its time.",
    why=(
        "The examination does not wait for a host that is slow with every answer, and does not compare a description "
        "of many megabytes. It reports what it skipped, so that nobody takes that for checked."
    ),
)
