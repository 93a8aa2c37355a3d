"""W934-W943: the documents of one live service agree; checked by `bespeak lint https://host`."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

_DRAFT: Final = "AI-Discovery"

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
