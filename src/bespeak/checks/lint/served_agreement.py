"""W934-W943: the documents of one live service say the same; `bespeak lint https://host` compares them."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

_DRAFT: Final = "AI-Discovery"

ADDRESSES: Final = Rule(
    "W934",
    "agtp-addresses-differ",
    "SHOULD",
    "AGIS 11.1",
    "agis.json, the AGIS document and /.well-known/agtp name one host for AGTP.",
    why="An agent that leaves HTTP for AGTP arrives at another service, or at none.",
)
OVER_HTTP: Final = Rule(
    "W935",
    "described-over-http",
    "MUST",
    f"{_DRAFT} 6.4",
    "An OpenAPI description names no http:// address for operations.",
    why="Agents must not call over plain HTTP: a credential would be everybody's.",
    bad='{"servers": [{"url": "http://flights.example/api"}]}\n',
    good='{"servers": [{"url": "https://flights.example/api"}]}\n',
    notation="json",
)
NAMES: Final = Rule(
    "W936",
    "service-names-differ",
    "SHOULD",
    f"{_DRAFT} 3.2",
    "The documents of one service give it one name.",
    why="Directories that read two of the documents list two services.",
)
NOT_IN_OPENAPI: Final = Rule(
    "W937",
    "capability-not-in-openapi",
    "SHOULD",
    f"{_DRAFT} 3.3",
    "Every capability at the host itself is an operation of its OpenAPI description.",
    why=(
        "An agent that looks up the schema of what it is about to call finds nothing, or the document names what is "
        "not there any more."
    ),
)
METHODS: Final = Rule(
    "W938",
    "summary-methods-differ",
    "MUST",
    "AGIS 11.1",
    "The methods in agis.json are those of the AGIS document.",
    why="Agents choose a service by the summary and call it by the document.",
)
AUTH: Final = Rule(
    "W939",
    "auth-differs",
    "SHOULD",
    f"{_DRAFT} 3.4",
    "What /.well-known/ai says about authentication fits what OpenAPI says.",
    why="An agent that was told to need no credential is refused, or sends one where nobody looks for it.",
)
NOT_IN_AGIS: Final = Rule(
    "W940",
    "capability-not-in-agis",
    "SHOULD",
    "AGIS 11",
    "Every capability that is written as /path:verb is an endpoint of the AGIS document.",
    why="An agent that reads intent and impact before it acts finds neither for this capability.",
)
LEADS_NOWHERE: Final = Rule(
    "W941",
    "summary-leads-nowhere",
    "MUST",
    "AGIS 11.1",
    "agis.json names where the AGIS document is, and it is there.",
    why="The summary is read to find the document; one that leads nowhere is of no use.",
)
INCOMPLETE: Final = Rule(
    "W942",
    "summary-incomplete",
    "MUST",
    "AGIS 11.1",
    "agis.json has every member of AGIS 11.1, null for what the service does not say.",
    why="Readers of the summary rely on its members, and stop at one that is not there.",
)
CUT: Final = Rule(
    "W943",
    "examination-cut",
    "style",
    "bespeak",
    "Everything there is to ask can be asked within the time of an examination, and compared.",
    why=(
        "A host that is slow with every answer is not waited for, and a description of many megabytes not compared: "
        "what was left out is told, so that nobody takes it for good."
    ),
)

RULES: Final = (
    *(ADDRESSES, OVER_HTTP, NAMES, NOT_IN_OPENAPI, METHODS, AUTH, NOT_IN_AGIS, LEADS_NOWHERE, INCOMPLETE),
    CUT,
)
