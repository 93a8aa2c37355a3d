"""D108-D119: rules for endpoint files, folders and manifests."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNSUPPORTED_HANDLER: Final = Rule(
    ("D108", "unsupported-handler", "MUST", "reading files"),
    "A handler is written in a form that AGTP-API 12 does not support.",
)
ENDPOINT_IN_TWO_FILES: Final = Rule(
    ("D111", "endpoint-in-two-files", "MUST", "reading files"), "Two files declare the same endpoint."
)
FOLDER_REACHED_TWICE: Final = Rule(
    ("D112", "folder-reached-twice", "SHOULD", "reading files"),
    "A folder is reached by two names, perhaps through a link back into itself.",
)
NOTHING_TO_SERVE: Final = Rule(
    ("D113", "nothing-to-serve", "SHOULD", "reading files"), "The folder contains nothing to serve."
)
UNKNOWN_DOCUMENT: Final = Rule(
    ("D114", "unknown-document", "MUST", "reading files"), "The file is not a kind of document that bespeak reads."
)
UNUSABLE_ENDPOINT: Final = Rule(
    ("D116", "unusable-endpoint", "SHOULD", "reading files"), "An endpoint of a manifest cannot be used."
)
LOWERCASE_METHOD: Final = Rule(
    ("D117", "method-in-small-letters", "SHOULD", "reading files"), "A method is not written in capitals.", fix="safe"
)
ASSUMED_DEFAULT: Final = Rule(
    ("D118", "assumed-default", "SHOULD", "reading files"), "A declaration is missing, and a default is used."
)
PYTHON_NOT_READ: Final = Rule(
    ("D119", "python-not-read", "style", "reading files"), "A contract written in Python is not compared."
)
