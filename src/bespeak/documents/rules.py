"""Rules for files: deployments, manifests, AGIS documents, OpenAPI descriptions and discovery documents of the web."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNSUPPORTED_HANDLER: Final = Rule("D108", "unsupported-handler", "MUST", "reading files")
ENDPOINT_IN_TWO_FILES: Final = Rule("D111", "endpoint-in-two-files", "MUST", "reading files")
FOLDER_REACHED_TWICE: Final = Rule("D112", "folder-reached-twice", "SHOULD", "reading files")
NOTHING_TO_SERVE: Final = Rule("D113", "nothing-to-serve", "SHOULD", "reading files")
UNKNOWN_DOCUMENT: Final = Rule("D114", "unknown-document", "MUST", "reading files")
UNUSABLE_ENDPOINT: Final = Rule("D116", "unusable-endpoint", "SHOULD", "reading files")
LOWERCASE_METHOD: Final = Rule("D117", "method-in-small-letters", "SHOULD", "reading files", fix="safe")
ASSUMED_DEFAULT: Final = Rule("D118", "assumed-default", "SHOULD", "reading files")
PYTHON_NOT_READ: Final = Rule("D119", "python-not-read", "style", "reading files")

MISSING_FIELD: Final = Rule("D120", "missing-field", "MUST", "AGIS 8.1, 9.1 pass 1")
WRONG_TYPE: Final = Rule("D121", "wrong-type", "MUST", "AGIS 10", fix="safe")
UNSUPPORTED_VERSION: Final = Rule("D122", "unsupported-version", "MUST", "AGIS 8.1", fix="safe")
ADDRESS: Final = Rule("D123", "agtp-address", "MUST", "AGIS 8.1", fix="unsafe")
ENDPOINTS_NOT_ARRAY: Final = Rule("D124", "endpoints-not-array", "MUST", "AGIS 8.1")
EMPTY_ENDPOINTS: Final = Rule("D125", "empty-endpoints", "MUST", "AGIS 8.1")
UNKNOWN_FIELD: Final = Rule("D126", "unknown-field", "SHOULD", "AGIS 8, 10", fix="unsafe")
RECOMMENDED_FIELD: Final = Rule("D127", "missing-recommended-field", "SHOULD", "AGIS 8.1")
NOT_AN_OBJECT: Final = Rule("D128", "not-an-object", "MUST", "AGIS 8.1")
COMMENTS_LOST: Final = Rule("D129", "comments-would-be-lost", "MUST", "bespeak format")

NOT_OPENAPI: Final = Rule("D160", "no-openapi-description", "MUST", "reading files")
BROKEN_REFERENCE: Final = Rule("D161", "reference-not-followed", "MUST", "reading files")
SCHEMA_CUT: Final = Rule("D162", "schema-cut", "SHOULD", "reading files")
SCHEMA_PART_DROPPED: Final = Rule("D163", "schema-part-left-out", "SHOULD", "reading files")
UNCLEAR_PARAMETER: Final = Rule("D164", "parameter-not-described", "SHOULD", "reading files")
NOT_IMPORTED: Final = Rule("D165", "part-not-imported", "style", "reading files")
DUPLICATE_OPERATION_ID: Final = Rule("D166", "operation-id-twice", "SHOULD", "reading files")
UNCLEAR_SERVER: Final = Rule("D167", "server-left-open", "SHOULD", "reading files")
UNCLEAR_BODY: Final = Rule("D168", "body-left-open", "SHOULD", "reading files")
UNUSABLE_SCHEME: Final = Rule("D169", "unusable-security-scheme", "MUST", "reading files")

UNREACHABLE: Final = Rule("W101", "web-document-unreachable", "MUST", "AI-Discovery 4")
ADDRESS_REFUSED: Final = Rule("W102", "web-address-refused", "MUST", "AI-Discovery 4")
UNUSABLE_ANSWER: Final = Rule("W103", "web-answer-unusable", "MUST", "AI-Discovery 4")
ROBOTS_DISALLOWED: Final = Rule("W104", "robots-disallowed", "MUST", "AI-Discovery 4")
UNUSABLE_DOCUMENT: Final = Rule("W105", "web-document-unusable", "MUST", "AI-Discovery 4")
UNUSABLE_CAPABILITY: Final = Rule("W106", "capability-unusable", "SHOULD", "AI-Discovery 4")
DOCUMENT_CUT: Final = Rule("W107", "web-document-cut", "SHOULD", "AI-Discovery 4")
CONTENT_USAGE: Final = Rule("W108", "content-usage-preference", "style", "AI-Discovery 4")
CAPABILITY_ELSEWHERE: Final = Rule("W109", "capability-elsewhere", "style", "AI-Discovery 4")

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
