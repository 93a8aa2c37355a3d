"""W101-W109: rules for the documents that a service publishes on the web."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREACHABLE: Final = Rule(
    ("W101", "web-document-unreachable", "MUST", "AI-Discovery 4"),
    "A document on the web cannot be fetched: the connection failed, timed out or is not trusted.",
    why=(
        "A service that does not answer in ten seconds, or whose certificate is not valid for the host, is not used: "
        "its answer could come from anybody. Check the address, the network and the certificate."
    ),
)
ADDRESS_REFUSED: Final = Rule(
    ("W102", "web-address-refused", "MUST", "AI-Discovery 4"),
    "The address is not allowed.",
    why=(
        "Documents and redirects can name addresses inside the reader's own network, or schemes other than https. "
        "Nothing is fetched from there. Enter the address yourself, or set allow_private (--allow-private), if you "
        "mean it."
    ),
)
UNUSABLE_ANSWER: Final = Rule(
    ("W103", "web-answer-unusable", "MUST", "AI-Discovery 4"),
    "A server's answer is not the requested document.",
    why=(
        "An answer is read only if it has the status 200, the media type of the document and a limited size. Serve the "
        "document as application/json, without an encoding, and within the limits."
    ),
)
ROBOTS_DISALLOWED: Final = Rule(
    ("W104", "robots-disallowed", "MUST", "AI-Discovery 4"),
    "The robots.txt of a site disallows fetching a document.",
    why=(
        "The owner of a site states in robots.txt what programs may fetch, and bespeak follows it. Ask the owner to "
        "allow the user agent bespeak."
    ),
)
UNUSABLE_DOCUMENT: Final = Rule(
    ("W105", "web-document-unusable", "MUST", "AI-Discovery 4"),
    "A document of a service cannot be used.",
    why=(
        "A document without its required members does not say how to call anything. The next source is tried. Tell the "
        "owner of the service what is missing."
    ),
    bad='{"aiendpoint": "1.0", "service": {"name": "Flights"}}\n',
    good=(
        '{"aiendpoint": "1.0", "service": {"name": "Flights", "description": "Finds flights."}, "capabilities": [\n'
        '  {"id": "search_flights", "description": "Search flights", "endpoint": "/flights", "method": "GET"}]}\n'
    ),
)
UNUSABLE_CAPABILITY: Final = Rule(
    ("W106", "capability-unusable", "SHOULD", "AI-Discovery 4"),
    "A capability cannot be used, and is left out.",
    why=(
        "One capability that cannot be called must not make the others unusable. It is left out; the message says what "
        "is wrong with it."
    ),
    bad='{"capabilities": [{"id": "search", "endpoint": "javascript:search()", "method": "GET"}]}\n',
    good='{"capabilities": [{"id": "search", "endpoint": "/search", "method": "GET"}]}\n',
)
DOCUMENT_CUT: Final = Rule(
    ("W107", "web-document-cut", "SHOULD", "AI-Discovery 4"),
    "A document exceeds a limit, and only a part of it is used.",
    why=(
        "Documents from strangers are read within limits. A text that is too long is cut, and capabilities beyond the "
        "first hundred are left out unless you ask for all of them (--all)."
    ),
)
CONTENT_USAGE: Final = Rule(
    ("W108", "content-usage-preference", "style", "AI-Discovery 4"),
    "A service states how its content may be used.",
    why=(
        "A discovery document does not give permission to use content. The service's statement, in headers or in "
        "robots.txt, is shown so that users of the content can follow it."
    ),
)
CAPABILITY_ELSEWHERE: Final = Rule(
    ("W109", "capability-elsewhere", "style", "AI-Discovery 4"),
    "A capability is on another host than its service.",
    why=(
        "A document may name capabilities on other hosts. They can be called, but no credential is sent there unless "
        "you list the host as trusted."
    ),
)
