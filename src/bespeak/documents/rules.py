"""D108-D119: rules for endpoint files, folders and manifests."""

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
