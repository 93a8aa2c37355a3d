"""The text of a description, JSON or YAML, as a document that locates its parts, and findings about them.

YAML of many megabytes is read event by event: the reader of `text.source` composes nodes first, needs 1.5 times the
CPU and 2.8 times the memory for 14 MB (1.2 GB instead of 160 MB for 8 MB of short lists), and refuses texts that
must be accepted here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import DUPLICATE, MALFORMED, UNREADABLE, WRONG_VALUE
from bespeak.text.reading.text_file import decode_text
from bespeak.text.source import pointer
from bespeak.text.source.json_tree import JsonTree, find_repeated
from bespeak.text.source.pointer import is_index, unescaped
from bespeak.text.source.tree import Location, NotationError, TooLarge, location_of, plain_value
from bespeak.text.source.yaml_tree import despite_tab_lines, fault_of


@dataclass(frozen=True, slots=True, eq=False)
class DescriptionFile:
    """One file of a description."""

    name: str  # file or address it was read from
    data: dict[str, Any]
    locate: Callable[[str], Location]  # function from a pointer to its location
    path: Path | None = None  # path on disk, if it is a file


@dataclass(frozen=True, slots=True)
class Spot:
    """A value with its document and pointer."""

    value: Any
    document: DescriptionFile
    at: str = ""

    def below(self, *parts: str | int) -> Spot:
        """Return the place below these keys; its value is None if it does not exist."""
        value, at = self.value, self.at
        for part in parts:
            at = pointer.child(at, part)
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                value = None
        return Spot(value, self.document, at)

    def entries(self) -> Iterator[tuple[str, Spot]]:
        """Yield the entries of an object except for extensions."""
        if isinstance(self.value, dict):
            for name in self.value:
                if not name.startswith("x-"):
                    yield name, self.below(name)

    def items(self) -> Iterator[Spot]:
        """Yield the items of a list."""
        if isinstance(self.value, list):
            for index in range(len(self.value)):
                yield self.below(index)

    def text(self, key: str) -> str:
        """Return the text under a key, or an empty one. YAML reads versions as numbers."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return value.strip() if isinstance(value, str) else ""

    def flag(self, key: str) -> bool | None:
        """Return the boolean under a key, also for a quoted `yes` of YAML 1.1; None if there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, str):
            return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(value.lower())
        return value if isinstance(value, bool) else None

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the place: document and pointer."""
        return self.document.name, self.at


MAX_DEPTH: Final = 200
MAX_EXPANDED: Final = 500_000
"""Maximum number of values that aliases may add. The data shares them, but a walk over it visits each."""

_WORDS: Final[dict[str, Any]] = {"True": True, "TRUE": True, "False": False, "FALSE": False, "Null": None, "NULL": None}
_STRING: Final = "tag:yaml.org,2002:str"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Frame:
    """An unfinished list or mapping."""

    __slots__ = ("anchor", "before", "data", "key", "merged")

    def __init__(self, data: dict[str, Any] | list[Any], anchor: str | None, before: int) -> None:
        self.data = data
        self.anchor = anchor
        self.before = before
        """Number of values read before this one began."""
        self.key: str | None = None
        self.merged: list[dict[str, Any]] = []


class YamlReader:
    """Reads one text. Keys are always strings (`200`, `on`); merge keys are merged; aliases share data."""

    def __init__(self) -> None:
        self.data: Any = None
        self.places: dict[int, tuple[int, int]] = {}
        """Line and column of each list and mapping, by its id."""
        self.repeated: list[tuple[str, int, int]] = []
        """Duplicate keys, with the location of the second."""
        self._open: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0
        self._expanded = 0
        self._documents = 0

    def read(self, text: str) -> None:
        """Read a text. Raises `NotationError` or yaml's own error if it is not valid."""
        steps: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in yaml.parse(text, Loader=_LOADER):
            step = steps.get(event.__class__)
            if step is not None:
                step(event)

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _refused(event, "the text holds several documents", "Put each document into its own file.")

    def _scalar(self, event: Any) -> None:
        self._values += 1
        text = event.value
        if self._open:
            frame = self._open[-1]
            if frame.data.__class__ is dict and frame.key is None:
                self._key(frame, text, event)
                return
        value = text
        if event.implicit[0] or (event.tag is not None and event.tag != _STRING and not event.implicit[1]):
            try:
                value = _WORDS[text] if text in _WORDS else plain_value(text)
            except TooLarge as reason:
                raise _refused(event, str(reason), "Write it in quotes if it is a text.") from None
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._put(value)

    def _key(self, frame: _Frame, text: str, event: Any) -> None:
        if text in frame.data and text != "<<":
            mark = event.start_mark
            self.repeated.append((text, mark.line + 1, mark.column + 1))
        frame.key = text

    def _begin(self, event: Any) -> None:
        self._values += 1
        if self._open and self._open[-1].data.__class__ is dict and self._open[-1].key is None:
            raise _refused(event, "a list or mapping is used as a key", "Use a text as the key.")
        if len(self._open) >= MAX_DEPTH:
            message = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"
            raise _refused(event, message, "Give the inner part a name of its own under `components`.")
        data: dict[str, Any] | list[Any] = {} if event.__class__ is yaml.MappingStartEvent else []
        mark = event.start_mark
        self.places[id(data)] = (mark.line + 1, mark.column + 1)
        self._open.append(_Frame(data, event.anchor, self._values))
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
        known = self._anchors.get(event.anchor)
        if known is None:
            inside = any(frame.anchor == event.anchor for frame in self._open)
            message = "an alias is inside its own anchor" if inside else "an alias (*) to an anchor that is not there"
            raise _refused(event, message, "Write the part out, or use `$ref`.")
        value, size = known
        self._expanded += size
        self._values += size
        if self._expanded > MAX_EXPANDED:
            message = f"aliases expand this document to more than {MAX_EXPANDED:,} values"
            raise _refused(event, message, "Write fewer aliases of aliases.")
        if self._open and self._open[-1].data.__class__ is dict and self._open[-1].key is None:
            if not isinstance(value, str):
                raise _refused(event, "an alias that is not a string is used as a key", "Write the key.")
            self._key(self._open[-1], value, event)
            return
        self._put(value)

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


def _refused(event: Any, message: str, advice: str) -> NotationError:
    return NotationError(event.start_mark.index, event.end_mark.index, message, advice)


MAX_BYTES: Final = 40 << 20  # Maximum size of a description. The largest public ones have about 12 MB.

_PLACED: Final = 2 << 20
"""Maximum length of a JSON text with line numbers: in a longer one, finding them would cost more than parsing it."""

_MOST_REPEATED: Final = 20


def parse_document(
    text: bytes | str, name: str, path: Path | None = None
) -> tuple[DescriptionFile | None, list[Diagnostic]]:
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


def _json(text: str, name: str, path: Path | None) -> tuple[DescriptionFile | None, list[Diagnostic]]:
    table = json_table(text.encode(), name, repeats=True)
    if isinstance(table, Diagnostic):
        return None, [table]
    if len(text) > _PLACED:
        locate: Callable[[str], Location] = lambda _: Location(name)  # noqa: E731
    else:
        locate = JsonTree(table.data, text, name).locate
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


def _read_yaml(text: str) -> YamlReader:
    reader = YamlReader()
    reader.read(text)
    return reader


def _yaml(text: str, name: str, path: Path | None) -> tuple[DescriptionFile | None, list[Diagnostic]]:
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

    return DescriptionFile(name, data, locate, path), repeated


_SHOWN: Final = 10  # findings of one rule and severity that are shown in full; the others are counted


class Notices:
    """Findings in the order they were reported. The same finding at the same place is reported once."""

    __slots__ = ("_count", "_file", "_found", "_seen")

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Diagnostic] = []
        self._count: Counter[tuple[Rule, Severity]] = Counter()
        self._seen: set[tuple[str, str, str, str]] = set()

    def error(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a part of the description that cannot be used."""
        self._add("error", rule, message, at, advice)

    def warning(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a part that the owner of the facade should check."""
        self._add("warning", rule, message, at, advice)

    def info(self, rule: Rule, message: str, at: Spot, advice: str = "") -> None:
        """Report a decision, for information."""
        self._add("info", rule, message, at, advice)

    def pass_on(self, finding: Diagnostic) -> None:
        """Add a finding of the text reader."""
        self._found.append(finding)

    def all(self) -> list[Diagnostic]:
        """Return the findings to show, followed by the counts of the omitted ones."""
        return [*self._found, *self._rest()]

    def _add(self, severity: Severity, rule: Rule, message: str, at: Spot, advice: str) -> None:
        known = (rule.id, at.document.name, at.at, message)
        if known in self._seen:
            return
        self._seen.add(known)
        self._count[rule, severity] += 1
        if self._count[rule, severity] <= _SHOWN:
            place = at.document.locate(at.at)
            self._found.append(rule.found(message, place, at.at, advice, severity=severity))

    def _rest(self) -> Iterator[Diagnostic]:
        for (rule, severity), count in self._count.items():
            if count > _SHOWN:
                message = f"{count - _SHOWN:,} more findings of {rule.id} are not shown"
                advice = "Fix the listed ones first."
                yield rule.found(message, Location(self._file), advice=advice, severity=severity)
