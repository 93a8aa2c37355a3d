"""The draft's illustrative notation, `BOOK /reservation { semantic { ... } }`, as the tree that YAML would give."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.text.source import tree as trees
from bespeak.text.source.shorthand import expand_tree
from bespeak.text.source.tree import NotationError, NumberTooLarge, Place, PlacedTree, Span, SyntaxFault, match_end
from bespeak.text.source.yaml_tree import unprintable

BLANK: Final = re.compile(r"(?:\s++|\#[^\n]*+|\.\.\.(?=\s|$|[,}\]]))*+")  # spaces, comments, and `...` for omissions
_SPACE: Final = re.compile(r"[ \t]*+")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_SINGLE: Final = re.compile(r"'((?:[^']|'')*+)'")
_FOLD: Final = re.compile(r"[ \t]*+\n\s*+")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\n\s*|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f"}
_LINE_REST: Final = re.compile(r"[ \t]*+(?:#[^\n]*+)?(?=\n|$|[,}\]])")  # a comment or the end of a block, at most
_LINE_PART: Final = re.compile(r"[{}\[\](),\n]|[ \t]#")
_PART: Final = re.compile(r"""[^,()\[\]{}"'\n]++|"(?:[^"\\\n]|\\[^\n])*+"|.""", re.DOTALL)
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


def _refused(at: int, message: str, advice: str) -> NotationError:
    return NotationError(at, at + 1, message, advice)


def quoted(text: str, at: int) -> tuple[str, int] | None:
    """Parse quoted text that fills its line; line breaks inside become one space."""
    found = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at)
    alone = found is not None and _LINE_REST.match(text, found.end())
    if found is None or (not alone and "\n" in found[0]):  # the next quote opens another text
        raise _refused(at, "a quoted text is not closed", "Write the closing quote.")
    if not alone:
        return None
    inside = _FOLD.sub(" ", found[1])
    if text[at] == "'":
        return inside.replace("''", "'"), found.end()
    return (_ESCAPE.sub(_unescape, inside) if "\\" in inside else inside), found.end()


def scalar(text: str, start: int, end: int) -> tuple[Any, Place]:
    written = " ".join(text[start:end].split())
    try:
        return trees.plain_value(written), Place(None, start, end)
    except NumberTooLarge as reason:
        raise NotationError(start, end, str(reason), "Write it in quotes if it is a text.") from None


def bracketed(text: str, at: int, depth: int) -> tuple[list[Any], Place]:
    """Parse the list that starts here; items with types in parentheses stay text."""
    if depth > trees.MAX_DEPTH:
        raise _refused(at, f"lists are nested more than {trees.MAX_DEPTH} levels deep", "Write fewer brackets.")
    items: list[Any] = []
    places: list[Place] = []
    here = at + 1
    while True:
        here = match_end(BLANK, text, here)
        char = text[here : here + 1]
        if char == "":
            raise _refused(at, "a list in brackets is not closed", "Write the closing bracket.")
        if char == "]":
            return items, Place(None, at, here + 1, items=places)
        if char == ",":
            here += 1
            continue
        item, below = _item(text, here, depth)
        if below.end <= here:
            raise _refused(here, f"{char!r} cannot stand here", "Remove it, or put the text in quotes.")
        items.append(item)
        places.append(below)
        here = below.end


def _item(text: str, at: int, depth: int) -> tuple[Any, Place]:
    if text[at] == "[":
        return bracketed(text, at, depth + 1)
    if text[at] in "\"'" and (found := quoted(text, at)) is not None:
        return found[0], Place(None, at, found[1])
    return scalar(text, at, part_end(text, at, "]", lines=True))


def part_end(text: str, at: int, closing: str, *, lines: bool) -> int:
    """Return the end of a plain item: a comma, a closing bracket, or a line end outside of brackets."""
    expected: list[str] = []
    last = at
    for found in _PART.finditer(text, at):
        part = found[0]
        if part in _OPENING:
            expected.append(_OPENING[part])
        elif expected and part == expected[-1]:
            expected.pop()
        elif part == "\n":
            if not lines and not expected:
                break
            continue
        elif part in closing or (part == "," and not expected):
            break
        if not part.isspace():
            last = found.end()
    return last - (len(text[at:last]) - len(text[at:last].rstrip()))


def plain_line(text: str, at: int, *, inline: bool) -> int:
    """Return the end of a plain value: the line end, a comment, or the closing brace of its block."""
    depth = 0
    end = len(text)
    for found in _LINE_PART.finditer(text, at):
        part = found[0]
        if part in _OPENING:
            depth += 1
            continue
        if part in "])}":
            depth -= 1
        if part[-1] in "\n#" or (part == "}" and depth < 0) or (part == "," and inline and depth <= 0):
            end = found.start()
            break
    return at + len(text[at:end].rstrip())


def _unescape(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:], 16)
        return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"
    return "" if escape[0] == "\n" else _ESCAPES.get(escape, escape)


_ENDPOINT: Final = re.compile(
    r"(?P<method>[A-Za-z][\w-]*+)[ \t]++(?P<path>/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+)\s*+\{"
)
_BLOCK: Final = re.compile(r"(?P<key>[A-Za-z_][\w-]*+)[ \t]*+\{")
_KEY: Final = re.compile(
    r"""(?:"(?P<double>[^"\n]*+)"|'(?P<single>[^'\n]*+)'|(?P<bare>[^\s"'\#,:{}\[\]()-][^"'\#,:{}\[\]()\n]*+))[ \t]*+
        :(?=\s|$)""",
    re.VERBOSE,
)
_DASH: Final = re.compile(r"-(?=\s|$)[ \t]*+")
_OF_FIELDS: Final = frozenset({"input", "output", "errors", "required", "optional", "properties"})
"""Blocks in which a bare name is a field and not a key without its colon."""
_LABELS: Final = frozenset({"AGIS endpoint", "AGIS endpoints"})  # labels that the draft prints above a single endpoint
_NO_COLUMN: Final = -1


def read(text: str) -> tuple[Any, Place]:
    reader = _BraceReader(text)
    root = reader.block("", column=_NO_COLUMN, closing="")
    rest = match_end(BLANK, text, reader.at)
    if rest < len(text):
        raise _refused(rest, f"{text[rest]!r} closes nothing", "Remove it.")
    return root


class _BraceBlock:
    """The statements of a block, collected during parsing."""

    def __init__(self, start: int) -> None:
        self.data: dict[str, Any] = {}
        self.place = Place(None, start)
        self.places: dict[str, Place] = {}
        self.bare: list[tuple[str, Place]] = []
        self.endpoints: list[tuple[Any, Place]] = []


class _BraceReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self._depth = self._count = 0
        self._line = (0, 0)

    def block(self, name: str, *, column: int, closing: str) -> tuple[Any, Place]:
        """Parse statements up to a closing brace, or while they are indented to at least a column."""
        self._deeper()
        # A statement on the line of the opening brace may end with a comma; below it, commas are part of a text.
        line_start = self._line_start(self.at)
        made = _BraceBlock(match_end(BLANK, self.text, self.at))
        while True:
            here = self._next(column)
            char = self.text[here : here + 1]
            if char in {"", "}"} or here < 0:
                break
            if char == ",":
                self.at = here + 1
                continue
            self.at = here
            self._statement(made, name, inline=bool(closing) and self._line_start(here) == line_start)
        self._depth -= 1
        return self._finish(made, name)

    def _next(self, column: int) -> int:
        """Return the start of the next statement, or -1 if it is not indented enough to belong here."""
        here = match_end(BLANK, self.text, self.at)
        if here < len(self.text) and column > _NO_COLUMN and self.column(here) < column and self.text[here] != "}":
            return -1 if self._line_start(here) >= self.at else here
        return here

    def column(self, at: int) -> int:
        return at - self._line_start(at)

    def _line_start(self, at: int) -> int:
        """Return the start of an offset's line. Offsets only grow, so a long line is scanned once."""
        start, seen = self._line
        if at < start:
            return self.text.rfind("\n", 0, at) + 1
        if at > seen:
            start = self.text.rfind("\n", seen, at) + 1 or start
            self._line = (start, at)
        return start

    def _statement(self, made: _BraceBlock, name: str, *, inline: bool) -> None:
        text, here = self.text, self.at
        if (found := _ENDPOINT.match(text, here)) is not None:
            made.endpoints.append(self._endpoint(found))
            return
        if (found := _BLOCK.match(text, here)) is not None:
            self.at = found.end()
            value = self._braces(found["key"])
            self._add(made, found["key"], Span(here, found.end("key")), value)
            return
        if (found := _KEY.match(text, here)) is not None:
            key = next(group for group in found.group("double", "single", "bare") if group is not None).rstrip()
            if key in _LABELS:
                key = "endpoints"
            end = here + len(found[0][:-1].rstrip())
            self.at = found.end()
            self._add(made, key, Span(here, end), self._value(key, here, inline=inline))
            return
        if _DASH.match(text, here):
            raise _refused(here, "a list item stands among keys", "Put the list under a key of its own.")
        end = part_end(text, here, "]})", lines=False)
        if end <= here:
            raise _refused(here, f"{text[here]!r} cannot stand here", "Remove it, or put the text in quotes.")
        written = " ".join(text[here:end].split())
        if name not in _OF_FIELDS:
            message = f"{written[:60]!r} is neither `key: value` nor a block in braces"
            raise NotationError(here, end, message, "Write a colon after the key, or put a long text in double quotes.")
        made.bare.append((written, Place(None, here, end)))
        self.at = end

    def _endpoint(self, found: re.Match[str]) -> tuple[Any, Place]:
        self.at = found.end()
        data, place = self._braces(found["path"])
        if not isinstance(data, dict):
            advice = "Write semantic, input, output, errors."
            raise NotationError(*found.span("method"), "an endpoint has no blocks", advice)
        entries = {name: Place(None, *found.span(name)) for name in ("method", "path")}
        whole = Place(None, found.start(), place.end, {**entries, **(place.entries or {})})
        for name in entries.keys() & data.keys():
            message = f"the endpoint has a {name} in its block as well"
            raise NotationError(*found.span(name), message, "Remove it there.")
        return {"method": found["method"], "path": found["path"], **data}, whole

    def _braces(self, name: str) -> tuple[Any, Place]:
        opened = self.at - 1
        data, place = self.block(name, column=_NO_COLUMN, closing="}")
        here = match_end(BLANK, self.text, self.at)
        if self.text[here : here + 1] != "}":
            raise _refused(opened, "a block in braces is not closed", "Write the closing brace.")
        self.at = here + 1
        place.start, place.end = opened, self.at
        return data, place

    def _add(self, made: _BraceBlock, key: str, span: Span, value: tuple[Any, Place]) -> None:
        if key in made.data:
            first = made.places[key].key
            line = self.text.count("\n", 0, first.start) + 1 if first else 0
            message = f"the key {key[:80]!r} is repeated; line {line} has it already"
            raise NotationError(span.start, span.end, message, "Remove one of the two, or rename it.")
        self._count += 1
        if self._count > trees.MAX_NODES:
            message = "the document has too many keys"
            raise NotationError(span.start, span.end, message, "Split it into several documents.")
        made.data[key], place = value
        place.key = span
        made.places[key] = place

    def _value(self, key: str, key_start: int, *, inline: bool) -> tuple[Any, Place]:
        text = self.text
        here = match_end(_SPACE, text, self.at)
        if here < len(text) and text[here] in "\n#":
            here = match_end(BLANK, text, here)
            indent, column = self.column(here), self.column(key_start)
            # Lists and endpoints need not be indented.
            belongs = indent == column and (_DASH.match(text, here) or _ENDPOINT.match(text, here))
            if here >= len(text) or text[here] == "}" or not (indent > column or belongs):
                return None, Place(None, self.at, self.at)
            self.at = here
            return self._nested(key)
        if here >= len(text) or text[here] in ",}":
            return None, Place(None, self.at, self.at)
        if text.startswith("...", here) and _LINE_REST.match(text, here + 3):
            self.at = here + 3
            return None, Place(None, here, self.at)
        self.at = here
        if text[here] == "{":
            self.at = here + 1
            return self._braces(key)
        found = self._closed(here) or self._plain(here, self.column(key_start), inline=inline)
        self.at = found[1].end
        return found

    def _closed(self, here: int) -> tuple[Any, Place] | None:
        """Parse a value in quotes or brackets if nothing else follows it."""
        text = self.text
        if text[here] in "\"'":
            found = quoted(text, here)
            return None if found is None else (found[0], Place(None, here, found[1]))
        if text[here] == "[":
            items, place = bracketed(text, here, self._depth)
            return (items, place) if _LINE_REST.match(text, place.end) else None
        return None

    def _plain(self, here: int, column: int, *, inline: bool) -> tuple[Any, Place]:
        """Parse text up to the end of its line, plus indented continuation lines."""
        text = self.text
        end = plain_line(text, here, inline=inline)
        while not inline and end < len(text):
            following = match_end(BLANK, text, end)
            gap = text[end:following]  # a comment in it ends the text, as it does in YAML
            if following >= len(text) or gap.count("\n") != 1 or "#" in gap or self.column(following) <= column:
                break
            starts = (_KEY, _BLOCK, _ENDPOINT, _DASH)
            if text[following] in "},]" or any(start.match(text, following) for start in starts):
                break
            end = plain_line(text, following, inline=False)
        return scalar(text, here, end)

    def _nested(self, key: str) -> tuple[Any, Place]:
        """Parse a value on the lines below its key."""
        here = self.at
        if _DASH.match(self.text, here):
            return self._items(self.column(here))
        if self.text[here] == "{":
            self.at = here + 1
            return self._braces(key)
        starts = self.text[here] in "\"'[" and not _KEY.match(self.text, here)
        if starts and (found := self._closed(here)) is not None:
            self.at = found[1].end
            return found
        return self.block(key, column=self.column(here), closing="")

    def _items(self, column: int) -> tuple[list[Any], Place]:
        self._deeper()
        text = self.text
        items: list[Any] = []
        places: list[Place] = []
        place = Place(None, self.at, self.at, items=places)
        while True:
            here = match_end(BLANK, text, self.at)
            dash = _DASH.match(text, here)
            if dash is None or self.column(here) != column:
                break
            self.at = dash.end()
            data, below = self._list_item(column)
            place.end = max(below.end, dash.start() + 1)
            items.append(data)
            places.append(below)
            self._count += 1
            if self._count > trees.MAX_NODES:
                raise _refused(here, "the document has too many items", "Split it into several documents.")
        self._depth -= 1
        return items, place

    def _list_item(self, column: int) -> tuple[Any, Place]:
        text, here = self.text, self.at
        if here >= len(text) or text[here] in "\n#":
            following = match_end(BLANK, text, here)
            if following >= len(text) or text[following] == "}" or self.column(following) <= column:
                return None, Place(None, here, here)
            self.at = here = following
        if (found := _ENDPOINT.match(text, here)) is not None:
            return self._endpoint(found)
        if _DASH.match(text, here):
            return self._items(self.column(here))
        if _KEY.match(text, here) or _BLOCK.match(text, here):
            return self.block("", column=self.column(here), closing="")
        if (closed := self._closed(here)) is None:
            typed = "(" in text[here : plain_line(text, here, inline=False)]
            end = part_end(text, here, "", lines=False) if typed else 0
            closed = scalar(text, here, end) if end else self._plain(here, column, inline=False)
        self.at = closed[1].end
        return closed

    def _finish(self, made: _BraceBlock, name: str) -> tuple[Any, Place]:
        place = made.place
        ends = [below.end for below in made.places.values()]
        ends += [below.end for _, below in (*made.bare, *made.endpoints)]
        place.end = max([place.start, *ends])
        if made.endpoints:
            return self._with_endpoints(made, name)
        if made.bare or (name == "errors" and not made.data):
            if made.data:
                made.bare += [(self._written(key, below), below) for key, below in made.places.items()]
                made.bare.sort(key=lambda pair: pair[1].key.start if pair[1].key else pair[1].start)
            place.items = [below for _, below in made.bare]
            return [written for written, _ in made.bare], place
        place.entries = made.places
        return made.data, place

    def _with_endpoints(self, made: _BraceBlock, name: str) -> tuple[Any, Place]:
        """Attach endpoints directly under a key as its list; at the top level they become `endpoints`."""
        places = [below for _, below in made.endpoints]
        listed = Place(None, places[0].start, places[-1].end, items=places)
        endpoints = [data for data, _ in made.endpoints]
        if name and not made.data and not made.bare:
            return endpoints, listed
        if name or made.bare or "endpoints" in made.data:
            raise _refused(listed.start, "endpoints stand among other things", "Put them in `endpoints:`.")
        made.place.entries = {"endpoints": listed, **made.places}
        return {"endpoints": endpoints, **made.data}, made.place

    def _written(self, key: str, below: Place) -> str:
        return f"{key}: {' '.join(self.text[below.start : below.end].split())}".rstrip(": ")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > trees.MAX_DEPTH:
            message = f"blocks are nested more than {trees.MAX_DEPTH} levels deep"
            raise NotationError(max(self.at - 1, 0), self.at, message, "Write fewer blocks inside each other.")


class BraceTree(PlacedTree):
    """A document in brace notation."""

    __slots__ = ()

    notation = "braces"


def parse_braces(text: str, file: str) -> BraceTree | SyntaxFault:
    text, crlf = trees.plain(text)
    if (refused := trees.too_long(text, file) or unprintable(text, file)) is not None:
        return refused
    try:
        data, root = read(text)
    except NotationError as reason:
        return reason.fault(text, file)
    tree = BraceTree(data, text, file, crlf=crlf, root=root)
    expand_tree(tree)
    return tree
