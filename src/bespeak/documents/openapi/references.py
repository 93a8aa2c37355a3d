"""References of a description, resolved in the document or in files beside it, never on the web."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.documents.openapi.document_text import DescriptionFile, Notices, Spot, parse_document
from bespeak.documents.rules import BROKEN_REFERENCE
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.pointer import ABSENT, nodes, value_at

MAX_FILES: Final = 500  # maximum number of files in one description
_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:|//")
_LONGEST: Final = 64  # maximum length of a chain of references


class RefResolver:
    """The files of one description, and the targets of its references."""

    def __init__(self, root: DescriptionFile, notices: Notices) -> None:
        self._root = root
        self._notices = notices
        self._folder = root.path.resolve().parent if root.path is not None else None
        self._files: dict[Path, DescriptionFile | None] = {}
        self._left = MOST_BYTES
        self._targets: dict[tuple[str, str], Spot | str] = {}  # or the reason why a reference has no target
        self._anchors: dict[str, dict[str, Spot]] = {}
        if root.path is not None:
            self._files[root.path.resolve()] = root

    def follow(self, spot: Spot, *, alone: bool = False) -> Spot | None:
        """Follow references, or report why not and return None. With `alone`, stop at one with other keys."""
        seen: set[tuple[str, str]] = set()
        while isinstance(spot.value, dict) and isinstance(spot.value.get("$ref"), str):
            if alone and len(spot.value) > 1:
                break
            if spot.key in seen or len(seen) == _LONGEST:
                message = f"the reference {brief(spot.value['$ref'])} is circular"
                self._notices.error(BROKEN_REFERENCE, message, spot, "Replace one of them by a definition.")
                return None
            seen.add(spot.key)
            target = self.target(spot)
            if target is None:
                return None
            spot = target
        return spot

    def target(self, spot: Spot) -> Spot | None:
        """Return the target of one reference; report a broken one and return None."""
        reference: str = spot.value["$ref"]
        known = (spot.document.name, reference)
        if known not in self._targets:
            self._targets[known] = self._find(reference, spot.document)
        found = self._targets[known]
        if isinstance(found, str):
            # Not cached: two schemas may each have their own definitions under one name.
            found = self._nearby(reference, spot) or found
        if isinstance(found, str):
            self._notices.error(BROKEN_REFERENCE, f"the reference {brief(reference)} {found}", spot, _ADVICE)
            return None
        return found

    def _find(self, reference: str, beside: DescriptionFile) -> Spot | str:
        file, _, fragment = reference.partition("#")
        document = self._document(file, beside) if file and file != beside.name else beside
        if isinstance(document, str):
            return document
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if document.name not in self._anchors:
                anchors = self._anchors[document.name] = {}
                for at, value in nodes(document.data):
                    if isinstance(value, dict) and isinstance(value.get("$anchor"), str):
                        anchors.setdefault(value["$anchor"], Spot(value, document, at))
            return self._anchors[document.name].get(fragment) or "names an anchor that does not exist"
        return _walk(document, fragment) or "has no target"

    def _document(self, file: str, beside: DescriptionFile) -> DescriptionFile | str:
        if _REMOTE.match(file):
            return "points to another server, and remote documents are not fetched"
        if beside.path is None or self._folder is None:
            return "points to another file, but the description was not read from a folder"
        try:
            path = (beside.path.parent / unquote(file)).resolve()
        except (OSError, ValueError, RuntimeError):
            return "is not a valid file name"
        if not path.is_relative_to(self._folder):
            return "points outside the folder of the description"
        if path not in self._files:
            if len(self._files) >= MAX_FILES:
                return f"exceeds the limit of {MAX_FILES} files in a description"
            self._files[path] = self._load(path)
        document = self._files[path]
        return document if document is not None else "points to a file that cannot be read"

    def _load(self, path: Path) -> DescriptionFile | None:
        text = read_text(path, self._left)
        if isinstance(text, Diagnostic):
            self._notices.pass_on([text])
            return None
        self._left -= len(text.encode(errors="replace"))
        document, found = parse_document(text, str(path), path)
        self._notices.pass_on(found)
        return document

    def _nearby(self, reference: str, spot: Spot) -> Spot | None:
        """Search `#/$defs/Name` in the enclosing schemas: tools embed whole schemas with such references."""
        if not reference.startswith(("#/$defs/", "#/definitions/")):
            return None
        fragment = unquote(reference[1:])
        parts = spot.at.split("/")
        for end in range(len(parts) - 1, 0, -1):
            if (found := _walk(spot.document, "/".join(parts[:end]) + fragment)) is not None:
                return found
        return None


_ADVICE: Final = "Copy the target into the description, and refer to it there."


def _walk(document: DescriptionFile, at: str) -> Spot | None:
    found = value_at(document.data, at, ABSENT)
    return None if found is ABSENT else Spot(found, document, at)
