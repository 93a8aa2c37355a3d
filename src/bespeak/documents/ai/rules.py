"""W101-W109: rules for the documents that a service publishes on the web."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

UNREACHABLE: Final = Rule(
    "W101",
    "web-document-unreachable",
    "MUST",
    "AI-Discovery 4",
    "A document on the web cannot be had: there is no connection, no answer, or nobody to trust.",
    why=(
        "A service that cannot be reached in ten seconds, or that shows somebody else's certificate, is not used: "
        "what came from it could come from anybody. Check the address, the network and the certificate."
    ),
)
ADDRESS_REFUSED: Final = Rule(
    "W102",
    "web-address-refused",
    "MUST",
    "AI-Discovery 4",
    "An address is none that may be asked.",
    why=(
        "Documents and redirects may name addresses inside the network of whoever reads them, or others than https. "
        "Nothing is asked there. Type the address yourself, or say allow_private (--allow-private), if you mean it."
    ),
)
UNUSABLE_ANSWER: Final = Rule(
    "W103",
    "web-answer-unusable",
    "MUST",
    "AI-Discovery 4",
    "What a server answers is not the document that was asked for.",
    why=(
        "Only an answer with the status 200, the media type of the document and a bounded size is read. Serve the "
        "document as application/json, without an encoding, and within the limits."
    ),
)
ROBOTS_DISALLOWED: Final = Rule(
    "W104",
    "robots-disallowed",
    "MUST",
    "AI-Discovery 4",
    "The robots.txt of a site does not let a document be asked for.",
    why=(
        "The owner of a site says in robots.txt what programs may ask for, and this program keeps to it. Ask the "
        "owner to allow the user agent bespeak."
    ),
)
UNUSABLE_DOCUMENT: Final = Rule(
    "W105",
    "web-document-unusable",
    "MUST",
    "AI-Discovery 4",
    "A document of a service cannot be used.",
    why=(
        "A document without its required members says too little to call anything by. The next source is looked at; "
        "tell the owner of the service what is missing."
    ),
    bad='{"aiendpoint": "1.0", "service": {"name": "Flights"}}\n',
    good=(
        '{"aiendpoint": "1.0", "service": {"name": "Flights", "description": "Finds flights."}, "capabilities": [\n'
        '  {"id": "search_flights", "description": "Search flights", "endpoint": "/flights", "method": "GET"}]}\n'
    ),
    notation="json",
)
UNUSABLE_CAPABILITY: Final = Rule(
    "W106",
    "capability-unusable",
    "SHOULD",
    "AI-Discovery 4",
    "A capability cannot be used, and is left out.",
    why=(
        "One capability that cannot be called must not keep the others from being used. It is left out; the message "
        "says what is wrong with it."
    ),
    bad='{"capabilities": [{"id": "search", "endpoint": "javascript:search()", "method": "GET"}]}\n',
    good='{"capabilities": [{"id": "search", "endpoint": "/search", "method": "GET"}]}\n',
    notation="json",
)
DOCUMENT_CUT: Final = Rule(
    "W107",
    "web-document-cut",
    "SHOULD",
    "AI-Discovery 4",
    "A document has more than is taken of it.",
    why=(
        "Nobody who reads documents of strangers takes them whole. A text that is too long is cut, and capabilities "
        "beyond the first hundred are left out unless all are asked for (--all)."
    ),
)
CONTENT_USAGE: Final = Rule(
    "W108",
    "content-usage-preference",
    "style",
    "AI-Discovery 4",
    "A service says how its content may be used.",
    why=(
        "A discovery document gives no permission to use content. What the service says about that, in headers or "
        "in robots.txt, is shown so that whoever uses the content can keep to it."
    ),
)
CAPABILITY_ELSEWHERE: Final = Rule(
    "W109",
    "capability-elsewhere",
    "style",
    "AI-Discovery 4",
    "A capability is at another host than its service.",
    why=(
        "A document may name capabilities at other hosts. They can be called, but no credential is sent there "
        "unless the host is named as trusted."
    ),
)

RULES: Final = (
    UNREACHABLE,
    ADDRESS_REFUSED,
    UNUSABLE_ANSWER,
    ROBOTS_DISALLOWED,
    UNUSABLE_DOCUMENT,
    UNUSABLE_CAPABILITY,
    DOCUMENT_CUT,
    CONTENT_USAGE,
    CAPABILITY_ELSEWHERE,
)
