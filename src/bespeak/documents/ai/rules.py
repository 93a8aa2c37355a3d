"""W101-W109: rules for the documents that a service publishes on the web."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNREACHABLE: Final = Rule("W101", "web-document-unreachable", "MUST", "AI-Discovery 4")
ADDRESS_REFUSED: Final = Rule("W102", "web-address-refused", "MUST", "AI-Discovery 4")
UNUSABLE_ANSWER: Final = Rule("W103", "web-answer-unusable", "MUST", "AI-Discovery 4")
ROBOTS_DISALLOWED: Final = Rule("W104", "robots-disallowed", "MUST", "AI-Discovery 4")
UNUSABLE_DOCUMENT: Final = Rule("W105", "web-document-unusable", "MUST", "AI-Discovery 4")
UNUSABLE_CAPABILITY: Final = Rule("W106", "capability-unusable", "SHOULD", "AI-Discovery 4")
DOCUMENT_CUT: Final = Rule("W107", "web-document-cut", "SHOULD", "AI-Discovery 4")
CONTENT_USAGE: Final = Rule("W108", "content-usage-preference", "style", "AI-Discovery 4")
CAPABILITY_ELSEWHERE: Final = Rule("W109", "capability-elsewhere", "style", "AI-Discovery 4")
