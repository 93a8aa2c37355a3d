"""The text of a description, JSON or YAML, as a document that locates its parts, and findings about them.

YAML is read event by event: the reader of `text.source` composes nodes first, needs 2.8 times the memory for 14 MB
(1.2 GB instead of 160 MB for 8 MB of short lists), and refuses texts that must be accepted here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partialmethod
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import yaml

from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.documents.rules import BROKEN_REFERENCE
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import DUPLICATE, MALFORMED, UNREADABLE, WRONG_VALUE
from bespeak.text.reading.text_file import decode_text, read_text
from bespeak.text.source import pointer
from bespeak.text.source.json_tree import JsonTree, find_repeated
from bespeak.text.source.pointer import ABSENT, is_index, nodes, unescaped, value_at
from bespeak.text.source.tree import Location, NotationError, NumberTooLarge, location_of, plain_value
from bespeak.text.source.yaml_tree import despite_tab_lines, fault_of, refused


@dataclass(frozen=True, slots=True, eq=False)
class DescriptionFile:
    name: str  # file or address it was read from
    data: dict[str, Any]
    locate: Callable[[str], Location]  # function from a pointer to its location
    path: Path | None = None  # path on disk, if it is a file


@dataclass(frozen=True, slots=True)
class Spot:
    value: Any
    document: DescriptionFile
    at: str = ""

    def below(self, *parts: str | int) -> Spot:
        """Return the place below these keys; its value is None if it does not exist."""
        value, at = self.value, self.at
        for part in parts:
            escaped = isinstance(part, str) and ("/" in part or "~" in part)  # few keys need it
            at = pointer.child(at, part) if escaped else f"{at}/{part}"
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                value = None
        return Spot(value, self.document, at)

    def entries(self) -> Iterator[tuple[str, Spot]]:
        """Yield the entries of an object except for extensions."""
        for name in self.value if isinstance(self.value, dict) else ():
            if not name.startswith("x-"):
                yield name, self.below(name)

    def items(self) -> Iterator[Spot]:
        yield from (self.below(index) for index in range(len(self.value) if isinstance(self.value, list) else 0))

    def texts(self, *keys: str) -> Iterator[str]:
        """Yield the texts under keys; an empty one if there is none. YAML reads versions as numbers."""
        for key in keys:
            value = self.value.get(key) if isinstance(self.value, dict) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = str(value)
            yield value.strip() if isinstance(value, str) else ""

    def text(self, key: str) -> str:
        return next(self.texts(key))

    def flag(self, key: str) -> bool | None:
        """Return the boolean under a key, also for a quoted `yes` of YAML 1.1; None if there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return _FLAGS.get(value.lower() if isinstance(value, str) else value) if isinstance(value, str | bool) else None

    @property
    def key(self) -> tuple[str, str]:
        return self.document.name, self.at


MAX_DEPTH: Final = 200
MAX_EXPANDED: Final = 500_000  # limit of values that aliases add: the data shares them, but a walk visits each
_PLACED: Final = 2 << 20  # limit of a JSON text with line numbers: finding them would cost more than parsing it
_MOST_REPEATED: Final = 20
_TRUE: Final = (True, "true", "yes", "on")
_FLAGS: Final[dict[object, bool]] = dict.fromkeys(_TRUE, True) | dict.fromkeys((False, "false", "no", "off"), False)
_WORDS: Final[dict[str, Any]] = {"True": True, "TRUE": True, "False": False, "FALSE": False, "Null": None, "NULL": None}
_STRING: Final = "tag:yaml.org,2002:str"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class _OpenValue:
    data: dict[str, Any] | list[Any]
    anchor: str | None
    before: int  # number of values read before this one began
    key: str | None = None
    merged: list[dict[str, Any]] = field(default_factory=list)


class YamlReader:
    """Reads one text. Keys are always strings (`200`, `on`); merge keys are merged; aliases share data."""

    def __init__(self) -> None:
        self.data: Any = None
        self.places: dict[int, tuple[int, int]] = {}  # line and column of each list and mapping, by its id
        self.repeated: list[tuple[str, int, int]] = []  # duplicate keys, with the location of the second
        self._open: list[_OpenValue] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = self._expanded = self._documents = 0

    def read(self, text: str) -> YamlReader:
        """Read a text. Raises `NotationError` or yaml's own error if it is not valid."""
        steps: dict[type, Callable[[Any], None]] = {
            **dict.fromkeys((yaml.MappingStartEvent, yaml.SequenceStartEvent), self._begin),
            **dict.fromkeys((yaml.MappingEndEvent, yaml.SequenceEndEvent), self._end),
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in yaml.parse(text, Loader=_LOADER):
            if (step := steps.get(event.__class__)) is not None:
                step(event)
        return self

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise refused(event, "the text holds several documents", "Put each document into its own file.")

    def _awaits_key(self) -> bool:
        return bool(self._open) and self._open[-1].data.__class__ is dict and self._open[-1].key is None

    def _scalar(self, event: Any) -> None:
        self._values += 1
        value = text = event.value
        if self._awaits_key():
            self._key(text, event)
            return
        if event.implicit[0] or (event.tag is not None and event.tag != _STRING and not event.implicit[1]):
            try:
                value = _WORDS[text] if text in _WORDS else plain_value(text)
            except NumberTooLarge as reason:
                raise refused(event, str(reason), "Write it in quotes if it is a text.") from None
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._put(value)

    def _key(self, text: str, event: Any) -> None:
        frame = self._open[-1]
        if text in frame.data and text != "<<":
            self.repeated.append((text, event.start_mark.line + 1, event.start_mark.column + 1))
        frame.key = text

    def _begin(self, event: Any) -> None:
        self._values += 1
        if self._awaits_key():
            raise refused(event, "a list or mapping is used as a key", "Use a text as the key.")
        if len(self._open) >= MAX_DEPTH:
            message = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"
            raise refused(event, message, "Give the inner part a name of its own under `components`.")
        data: dict[str, Any] | list[Any] = {} if event.__class__ is yaml.MappingStartEvent else []
        self.places[id(data)] = (event.start_mark.line + 1, event.start_mark.column + 1)
        self._open.append(_OpenValue(data, event.anchor, self._values))
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)

    def _end(self, _: Any) -> None:
        frame = self._open.pop()
        for merged in frame.merged:
            for name, value in merged.items():
                frame.data.setdefault(name, value)  # type: ignore[union-attr]  # only mappings have merge keys
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.data, self._values - frame.before + 1)
        self._put(frame.data)

    def _alias(self, event: Any) -> None:
        if (known := self._anchors.get(event.anchor)) is None:
            inside = any(frame.anchor == event.anchor for frame in self._open)
            message = "an alias is inside its own anchor" if inside else "an alias (*) to an anchor that is not there"
            raise refused(event, message, "Write the part out, or use `$ref`.")
        value, size = known
        self._expanded += size
        self._values += size
        if self._expanded > MAX_EXPANDED:
            message = f"aliases expand this document to more than {MAX_EXPANDED:,} values"
            raise refused(event, message, "Write fewer aliases of aliases.")
        if not self._awaits_key():
            self._put(value)
        elif isinstance(value, str):
            self._key(value, event)
        else:
            raise refused(event, "an alias that is not a string is used as a key", "Write the key.")

    def _put(self, value: Any) -> None:
        if not self._open:
            self.data = value
            return
        frame = self._open[-1]
        data = frame.data
        if isinstance(data, list):
            data.append(value)
            return
        if frame.key == "<<" and isinstance(value, dict | list):
            frame.merged += [part for part in ([value] if isinstance(value, dict) else value) if isinstance(part, dict)]
        else:
            data[frame.key or ""] = value
        frame.key = None


def parse_document(
    text: bytes | str, name: str, path: Path | None = None
) -> tuple[DescriptionFile | None, list[Diagnostic]]:
    """Parse a text; return findings if it is not valid. The first character tells JSON from YAML."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if len(data) > MOST_BYTES:
        message = f"the description has {len(data):,} bytes, more than {MOST_BYTES:,}"
        return None, [UNREADABLE.found(message, Location(name), advice="Split it, or import a part of it.")]
    decoded = decode_text(data, Path(name))
    if isinstance(decoded, Diagnostic):
        place = decoded.location
        located = Location(name, place.line, place.column) if place is not None else Location(name)
        return None, [replace(decoded, location=located)]
    return (_json if decoded.lstrip()[:1] in {"{", "["} else _yaml)(decoded, name, path)


def _json(text: str, name: str, path: Path | None) -> tuple[DescriptionFile | None, list[Diagnostic]]:
    table = json_table(text.encode(), name, repeats=True)
    if isinstance(table, Diagnostic):
        return None, [table]
    locate = JsonTree(table.data, text, name).locate if len(text) <= _PLACED else table.findings.locate
    return DescriptionFile(name, table.data, locate, path), _repeated_in_json(text, name)


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


def _yaml(text: str, name: str, path: Path | None) -> tuple[DescriptionFile | None, list[Diagnostic]]:
    try:
        reader, text = despite_tab_lines(lambda given: YamlReader().read(given), text)
    except NotationError as reason:
        place = location_of(text, name, reason.start, reason.end)
        message = f"this YAML cannot be converted to JSON: {reason.message}"
        return None, [MALFORMED.found(message, place, advice=reason.help)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if not isinstance(error, yaml.YAMLError):
            return None, [MALFORMED.found(f"this is not YAML: {brief(str(error))}", Location(name))]
        fault = fault_of(error, text, name)
        return None, [MALFORMED.found(f"this is not YAML: {fault.message}", fault.location, advice=fault.help)]
    if not isinstance(reader.data, dict):
        return None, [WRONG_VALUE.found(f"the document is {brief(reader.data)}, not an object", Location(name))]
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

    return DescriptionFile(name, data, locate, path), repeated


_SHOWN: Final = 10  # findings of one rule and severity that are shown in full; the others are counted


@dataclass(slots=True)
class Notices:
    """Findings in the order they were reported. The same finding at the same place is reported once."""

    _file: str
    _found: list[Diagnostic] = field(default_factory=list)
    _count: Counter[tuple[Rule, Severity]] = field(default_factory=Counter)
    _seen: set[tuple[str, str, str, str]] = field(default_factory=set)

    def pass_on(self, findings: Iterable[Diagnostic]) -> None:
        self._found += findings

    def _add(self, severity: Severity, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        known = (rule.id, at.document.name, at.at, message)
        if known in self._seen:
            return
        self._seen.add(known)
        self._count[rule, severity] += 1
        if self._count[rule, severity] <= _SHOWN:
            self._found.append(rule.found(message, at.document.locate(at.at), at.at, advice, severity=severity))

    error = partialmethod(_add, "error")  # a part of the description cannot be used
    warning = partialmethod(_add, "warning")  # the owner of the facade should check a part
    info = partialmethod(_add, "info")  # a decision, for information

    def all(self) -> list[Diagnostic]:
        """Return the findings to show, followed by the counts of the omitted ones."""
        found, place, advice = [*self._found], Location(self._file), "Fix the listed ones first."
        for (rule, severity), count in self._count.items():
            if count > _SHOWN:
                message = f"{count - _SHOWN:,} more findings of {rule.id} are not shown"
                found.append(rule.found(message, place, advice=advice, severity=severity))
        return found


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
            if (target := self.target(spot)) is None:
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
