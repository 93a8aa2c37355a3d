"""W101-W109: rules for the documents that a service publishes on the web."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREACHABLE: Final = Rule(
    ("W101", "web-document-unreachable", "MUST", "AI-Discovery 4"),
    "A document on the web cannot be fetched: the connection failed, timed out or is not trusted.",
)
ADDRESS_REFUSED: Final = Rule(("W102", "web-address-refused", "MUST", "AI-Discovery 4"), "The address is not allowed.")
UNUSABLE_ANSWER: Final = Rule(
    ("W103", "web-answer-unusable", "MUST", "AI-Discovery 4"), "A server's answer is not the requested document."
)
ROBOTS_DISALLOWED: Final = Rule(
    ("W104", "robots-disallowed", "MUST", "AI-Discovery 4"), "The robots.txt of a site disallows fetching a document."
)
UNUSABLE_DOCUMENT: Final = Rule(
    ("W105", "web-document-unusable", "MUST", "AI-Discovery 4"), "A document of a service cannot be used."
)
UNUSABLE_CAPABILITY: Final = Rule(
    ("W106", "capability-unusable", "SHOULD", "AI-Discovery 4"), "A capability cannot be used, and is left out."
)
DOCUMENT_CUT: Final = Rule(
    ("W107", "web-document-cut", "SHOULD", "AI-Discovery 4"),
    "A document exceeds a limit, and only a part of it is used.",
)
CONTENT_USAGE: Final = Rule(
    ("W108", "content-usage-preference", "style", "AI-Discovery 4"), "A service states how its content may be used."
)
CAPABILITY_ELSEWHERE: Final = Rule(
    ("W109", "capability-elsewhere", "style", "AI-Discovery 4"), "A capability is on another host than its service."
)
