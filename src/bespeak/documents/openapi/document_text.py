"""The text of a description, JSON or YAML, as a document that locates its parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from bespeak.documents.openapi.spot import Document
from bespeak.documents.openapi.yaml_events import YamlReader
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_text import json_table
from bespeak.text.reading.rules import DUPLICATE, MALFORMED, UNREADABLE, WRONG_VALUE
from bespeak.text.reading.text_file import decode_text
from bespeak.text.source.json_places import find_repeated
from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.pointer import is_index, unescaped
from bespeak.text.source.span import Location
from bespeak.text.source.text_position import location_of
from bespeak.text.source.tree import NotationError
from bespeak.text.source.yaml_fault import fault_of
from bespeak.text.source.yaml_loader import despite_tab_lines

MAX_BYTES: Final = 40 << 20
"""Maximum size of a description. The largest public ones have about 12 MB."""

_PLACED: Final = 2 << 20
"""Maximum length of a JSON text with line numbers: in a longer one, finding them would cost more than parsing it."""

_MOST_REPEATED: Final = 20


def parse_document(text: bytes | str, name: str, path: Path | None = None) -> tuple[Document | None, list[Diagnostic]]:
    """Parse a text; return findings if it is not valid. The first character tells JSON from YAML."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(data) > MAX_BYTES:
        message = f"the description has {len(data):,} bytes, more than {MAX_BYTES:,}"
        return None, [UNREADABLE.found(message, Location(name), advice="Split it, or import a part of it.")]
    decoded = decode_text(data, Path(name))
    if isinstance(decoded, Diagnostic):
        place = decoded.location
        located = Location(name, place.line, place.column) if place is not None else Location(name)
        return None, [replace(decoded, location=located)]
    if decoded.lstrip()[:1] in {"{", "["}:
        return _json(decoded, name, path)
    return _yaml(decoded, name, path)


def _json(text: str, name: str, path: Path | None) -> tuple[Document | None, list[Diagnostic]]:
    table = json_table(text.encode(), name, repeats=True)
    if isinstance(table, Diagnostic):
        return None, [table]
    if len(text) > _PLACED:
        locate: Callable[[str], Location] = lambda _: Location(name)  # noqa: E731
    else:
        locate = JsonTree(table.data, text, name).locate
    return Document(name, table.data, locate, path), _repeated_in_json(text, name)


def _repeated_in_json(text: str, name: str) -> list[Diagnostic]:
    found: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len({key for key, _ in pairs}) < len(pairs) and len(found) < _MOST_REPEATED:
            times = Counter(key for key, _ in pairs)
            found.update({key: None for key, count in times.items() if count > 1})

    try:
        # The fast decoder silently keeps the last of two equal keys, so this one only looks for them.
        json.loads(text, object_pairs_hook=look, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return []
    place = Location(name)
    if found and len(text) <= _PLACED:
        spans = find_repeated(text)
        place = location_of(text, name, spans[0].start, spans[0].end) if spans is not None else place
    return [_repeated(key, place) for key in found]


def _repeated(key: str, place: Location) -> Diagnostic:
    message = f"the key {brief(key)} occurs twice in one object; the last one counts"
    return DUPLICATE.found(message, place, advice="Remove one of the two, or rename it.", severity="warning")


def _read_yaml(text: str) -> YamlReader:
    reader = YamlReader()
    reader.read(text)
    return reader


def _yaml(text: str, name: str, path: Path | None) -> tuple[Document | None, list[Diagnostic]]:
    try:
        reader, text = despite_tab_lines(_read_yaml, text)
    except NotationError as reason:
        place = location_of(text, name, reason.start, reason.end)
        return None, [
            MALFORMED.found(f"this YAML cannot be converted to JSON: {reason.message}", place, advice=reason.help)
        ]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if not isinstance(error, yaml.YAMLError):
            return None, [MALFORMED.found(f"this is not YAML: {brief(str(error))}", Location(name))]
        fault = fault_of(error, text, name)
        return None, [MALFORMED.found(f"this is not YAML: {fault.message}", fault.location, advice=fault.help)]
    if not isinstance(reader.data, dict):
        message = f"the document is {brief(reader.data)}, not an object"
        return None, [WRONG_VALUE.found(message, Location(name))]
    repeated = [_repeated(key, Location(name, line, column)) for key, line, column in reader.repeated[:_MOST_REPEATED]]
    data, places = reader.data, reader.places

    def locate(at: str) -> Location:
        """Return the location of the nearest list or mapping around a pointer."""
        here: Any = data
        place = places.get(id(data), (1, 1))
        for part in at.split("/")[1:]:
            if isinstance(here, dict):
                here = here.get(unescaped(part))
            else:
                here = here[int(part)] if isinstance(here, list) and is_index(part, here) else None
            place = places.get(id(here), place)
        return Location(name, *place)

    return Document(name, data, locate, path), repeated
