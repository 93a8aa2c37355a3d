"""D108-D119: rules for endpoint files, folders and manifests."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

UNSUPPORTED_HANDLER: Final = Rule(
    ("D108", "unsupported-handler", "MUST", "reading files"),
    "A handler is written in a form that AGTP-API 12 does not support.",
    why="AGTP-API defines one form for each kind of handler, so that any server can run it. Write it in that form.",
    bad=('[endpoint.handler]\ntype = "registered_function"\nmodule = "rooms.handlers"\nfunction = "book_room"\n'),
    good='[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n',
)
ENDPOINT_IN_TWO_FILES: Final = Rule(
    ("D111", "endpoint-in-two-files", "MUST", "reading files"),
    "Two files declare the same endpoint.",
    why="Only one of the two can be served. Remove one, or give it its own path.",
)
FOLDER_REACHED_TWICE: Final = Rule(
    ("D112", "folder-reached-twice", "SHOULD", "reading files"),
    "A folder is reached by two names, perhaps through a link back into itself.",
    why="Its endpoints would be read twice, or in an endless loop. Remove the link.",
)
NOTHING_TO_SERVE: Final = Rule(
    ("D113", "nothing-to-serve", "SHOULD", "reading files"),
    "The folder contains nothing to serve.",
    why=(
        "A server without endpoints answers only the floor methods. Add an endpoint file, an app or an AGIS document, "
        "or start in the folder that has them."
    ),
)
UNKNOWN_DOCUMENT: Final = Rule(
    ("D114", "unknown-document", "MUST", "reading files"),
    "The file is not a kind of document that bespeak reads.",
    why="A file of an unknown kind is not checked. Add the key that identifies its kind, or `exclude` the file.",
)
UNUSABLE_ENDPOINT: Final = Rule(
    ("D116", "unusable-endpoint", "SHOULD", "reading files"),
    "An endpoint of a manifest cannot be used.",
    why="Clients skip an endpoint without a method and a path, because nobody can call it. Publish both.",
    bad='{"endpoints": [{"method": "BOOK", "path": ""}]}\n',
    good='{"endpoints": [{"method": "BOOK", "path": "/room"}]}\n',
)
LOWERCASE_METHOD: Final = Rule(
    ("D117", "method-in-small-letters", "SHOULD", "reading files"),
    "A method is not written in capitals.",
    why="It is read as if in capitals here, but other readers refuse it. Write it in capitals.",
    bad='[endpoint]\nmethod = "book"\n',
    good='[endpoint]\nmethod = "BOOK"\n',
    fix="safe",
)
ASSUMED_DEFAULT: Final = Rule(
    ("D118", "assumed-default", "SHOULD", "reading files"),
    "A declaration is missing, and a default is used.",
    why="Readers cannot tell an empty declaration from a forgotten one. Write it explicitly, even if it is empty.",
)
PYTHON_NOT_READ: Final = Rule(
    ("D119", "python-not-read", "style", "reading files"),
    "A contract written in Python is not compared.",
    why="What a program declares is known only when it runs. Compare with the manifest of the running server.",
)
