"""YAML text to plain data with places: the types of the YAML 1.2 core schema, within bounds.

libyaml decides what is YAML; its own recursion would overflow the stack. Tags, merge keys and non-string keys are
refused: the draft requires that YAML and JSON mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar

import yaml

from bespeak.text.source import tree as trees
from bespeak.text.source.pointer import is_index, unescaped
from bespeak.text.source.tree import NUMERIC, WORDS, NotationError, NumberTooLarge, Span, SyntaxFault, Tree, location_of

_T = TypeVar("_T")
STRING: Final = "tag:yaml.org,2002:str"
_TAB_LINE: Final = re.compile(r"^ *+\t[ \t]*+(?=\r?$)", re.MULTILINE)


if yaml.__with_libyaml__:
    from yaml._yaml import CParser as _Loader
else:
    from yaml.composer import Composer
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Loader(Reader, Scanner, Parser, Composer):  # type: ignore[no-redef]  # the same without libyaml
        def __init__(self, text: str) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)


class _BoundedLoader(_Loader):
    """A composer that counts nodes. Its methods run at each node, so they are as cheap as Python allows."""

    def __init__(self, text: str) -> None:
        _Loader.__init__(self, text)
        inside: list[Any] = []
        enter = inside.append
        number = count(1).__next__

        def descend(above: Any, _: Any) -> None:
            enter(above)
            if len(inside) > trees.MAX_DEPTH + 1:
                raise _too_deep(above)
            if number() > trees.MAX_NODES:
                start = above.start_mark.index
                message = f"the document has more than {trees.MAX_NODES:,} keys and values"
                raise NotationError(start, start + 1, message, "Split it into several documents.")

        def resolve(kind: Any, _: Any, implicit: Any) -> str:
            """Keep an empty tag for a node without one: `yaml_data` decides its type."""
            if kind is yaml.ScalarNode:
                return "" if implicit[0] else STRING
            if len(inside) > trees.MAX_DEPTH:
                raise _too_deep(inside[-1])
            return ""

        self.descend_resolver = descend
        self.ascend_resolver = inside.pop
        self.resolve = resolve


def without_tab_lines(text: str, filler: str = "") -> str:
    """Replace the blanks of lines that consist of blanks with tabs: YAML 1.2 accepts them, libyaml does not.

    With a space as `filler` offsets stay the same, but such a line must not be longer than the indentation of a block
    text that begins with it.
    """
    return _TAB_LINE.sub(lambda found: filler * len(found.group()), text)


def despite_tab_lines(read: Callable[[str], _T], text: str, filler: str = "") -> tuple[_T, str]:
    """Read a text, if necessary without the tabs in lines of blanks; return what was read, and the text it was in."""
    try:
        return read(text), text
    except yaml.YAMLError as error:
        without_tabs = without_tab_lines(text, filler)
        if without_tabs == text:
            raise
        try:
            return read(without_tabs), without_tabs
        except yaml.YAMLError:
            raise error from None


def compose(text: str) -> yaml.Node | None:
    """Return the root node of the only document in a text; None if there are only comments."""
    loader = _BoundedLoader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def _too_deep(above: Any) -> NotationError:
    start = above.start_mark.index
    message = f"lists and mappings are nested more than {trees.MAX_DEPTH} levels deep"
    return NotationError(start, start + 1, message, "Give the inner part a name of its own under `schemas`.")


MAX_EXPANDED: Final = 200_000  # limit of nodes that aliases add: nine lines could make billions
_SUSPECT: Final = NUMERIC | {"", "~", "n", "t", "f", "<"}  # first characters of plain keys that may not be strings
_CORE: Final = "tag:yaml.org,2002:"
_TYPES: Final = {f"{_CORE}{name}": kind for name, kind in (("int", int), ("float", float), ("bool", bool))}


def build(root: yaml.Node | None, text: str) -> tuple[Any, bool]:
    """Build the data of a document; also return whether it has aliases."""
    if root is None:
        return None, False
    watched = "*" in text and "&" in text
    builder = _Builder(text, watched)
    return builder.watch(root, 0) if watched else builder.data(root), builder.aliased


@dataclass(slots=True)
class _Builder:
    _text: str
    _watched: bool
    _active: set[int] = field(default_factory=set)
    _first: set[int] = field(default_factory=set)
    _expanded: int = 0
    _length: int = 0
    aliased: bool = False

    def data(self, node: yaml.Node) -> Any:
        kind = node.__class__
        if kind is yaml.ScalarNode:
            return _scalar(node)
        if kind is yaml.MappingNode:
            return self._mapping(node)
        return self._list(node)

    def watch(self, node: yaml.Node, near: int) -> Any:
        """Build the data of a node that may be an alias; `near` is the end of the text before it, which locates it."""
        me = id(node)
        if me in self._active:
            advice = "Write the inner part out, or use `$ref` in a JSON Schema."
            raise self._at_alias(near, "an alias is inside its own anchor", advice)
        if me not in self._first:
            self._first.add(me)
        else:
            self.aliased = True
            self._expanded += 1
            self._length += _length(node)
            if self._expanded > MAX_EXPANDED:
                message = f"aliases expand this document to more than {MAX_EXPANDED:,} values"
                raise self._at_alias(near, message, "Write fewer aliases of aliases.")
            if self._length > trees.MAX_BYTES:
                message = f"aliases make more than {trees.MAX_BYTES >> 20} MiB of this document"
                raise self._at_alias(near, message, "Write fewer aliases of long texts.")
        if len(self._active) > trees.MAX_DEPTH + 1:
            message = f"aliases nest this document more than {trees.MAX_DEPTH} levels deep"
            raise self._at_alias(near, message, "Write fewer aliases of aliases.")
        self._active.add(me)
        data = self.data(node)
        self._active.discard(me)
        return data

    def _at_alias(self, near: int, message: str, advice: str) -> NotationError:
        at = max(self._text.find("*", near), 0)
        return NotationError(at, at + 1, message, advice)

    def _list(self, node: yaml.Node) -> list[Any]:
        if node.tag and node.tag != f"{_CORE}seq":
            raise _tagged(node)
        if self._watched:
            items: list[Any] = []
            near = node.start_mark.index
            for item in node.value:
                items.append(self.watch(item, near))
                near = max(near, item.end_mark.index)
            return items
        data = self.data
        return [_scalar(item) if item.__class__ is yaml.ScalarNode else data(item) for item in node.value]

    def _mapping(self, node: yaml.Node) -> dict[str, Any]:
        if node.tag and node.tag != f"{_CORE}map":
            raise _tagged(node)
        made: dict[str, Any] = {}
        for key, item in node.value:
            name = key.value
            if key.tag != STRING and (key.__class__ is not yaml.ScalarNode or key.tag or name[:1] in _SUSPECT):
                _check_key(key)
            if name in made:
                raise _repeated(node, key, self._text)
            if self._watched:
                made[name] = self.watch(item, key.end_mark.index)
            elif item.__class__ is yaml.ScalarNode:
                made[name] = _scalar(item)
            else:
                made[name] = self.data(item)
        return made


def _length(node: yaml.Node) -> int:
    """Count the characters of a text or of a mapping's keys: aliases share them in memory but not in output."""
    if node.__class__ is yaml.ScalarNode:
        return len(node.value)
    return sum(len(key.value) for key, _ in node.value) if node.__class__ is yaml.MappingNode else 0


def _scalar(node: yaml.Node) -> Any:
    text = node.value
    tag = node.tag
    if tag == "":
        return _typed(node) if text[:1] in NUMERIC else WORDS.get(text, text)
    if tag == STRING:
        return text
    value = _typed(node)
    if (tag == f"{_CORE}null" and value is None) or type(value) is _TYPES.get(tag):
        return value
    if tag == f"{_CORE}float" and type(value) is int:
        return float(value)
    raise _tagged(node)


def _typed(node: yaml.Node) -> Any:
    try:
        return trees.plain_value(node.value)
    except NumberTooLarge as reason:
        raise refused(node, str(reason), "Write it in quotes if it is a text.") from None


def refused(node: Any, message: str, advice: str) -> NotationError:
    return NotationError(node.start_mark.index, node.end_mark.index, message, advice)


def _check_key(key: yaml.Node) -> None:
    if not isinstance(key, yaml.ScalarNode):
        raise refused(key, "a list or mapping is used as a key", "Use a text as the key.")
    if key.tag:
        raise _tagged(key)
    text = key.value
    if text == "<<":
        advice = "Write the entries out: JSON, the other form of this document, has no merge keys."
        raise refused(key, "merge keys (<<) are not supported", advice)
    if (text in WORDS or text[0] in NUMERIC) and not isinstance(_typed(key), str):
        message = f"the key {text:.40} is not a text" if text else "a key is missing before the colon"
        raise refused(key, message, f'Write it in quotes: "{text:.40}".' if text else "Write the key.")


def _repeated(mapping: yaml.Node, second: yaml.Node, text: str) -> NotationError:
    first = next(key for key, _ in mapping.value if key.value == second.value)
    line = text.count("\n", 0, first.start_mark.index) + 1
    message = f"the key {second.value[:80]!r} is repeated; line {line} has it already"
    return refused(second, message, "Remove one of the two, or rename it.")


def _tagged(node: yaml.Node) -> NotationError:
    tag = node.tag.removeprefix(_CORE)
    shown = f"!!{tag}" if tag != node.tag else tag
    if node.tag in _TYPES or node.tag == f"{_CORE}null":
        return refused(node, f"the value is no {tag}", f"Remove the tag {shown}, or correct the value.")
    return refused(node, f"the tag {shown[:80]} is not supported", "Remove the tag: JSON has none.")


_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_QUOTES: Final = "Put the value in quotes."
_INDENT: Final = "Indent it like its neighbours, with spaces."
_CLOSED: Final = "Close what is open, or put the text in quotes."
_WORDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("tab character", "a tab is used for indentation", "Indent with spaces."),
    ("cannot start any token", "a tab is used for indentation", "Indent with spaces."),  # `fault_of` has any other one
    (
        "mapping values are not allowed",
        "a second ': ' on this line, or a key that is not indented like its neighbours",
        "Put a value that contains ': ' in quotes; indent keys of one mapping alike.",
    ),
    ("unexpected ':'", "a ':' that neither follows a key nor stands inside quotes", _QUOTES),
    ("could not find expected ':'", "the key has no ':' after it", "Write `key: value`, or put the text in quotes."),
    ("did not find expected key", "a key is expected here", _INDENT),
    ("expected <block end>", "this line does not belong to the block above it", _INDENT),
    ("did not find expected '-' indicator", "a list item ('- ') is expected here", _INDENT),
    ("',' or ']'", "a list in brackets is not closed, or a comma is missing", _CLOSED),
    ("',' or '}'", "a mapping in braces is not closed, or a comma is missing", _CLOSED),
    ("node content", "a value is expected here", "Write the value, or remove what stands before it."),
    ("unexpected end of stream", "a quoted text is not closed", "Write the closing quote."),
    ("unexpected document indicator", "a quoted text is not closed", "Write the closing quote."),
    ("sequence entries are not allowed", "a list item cannot start here", "Start the list on its own line."),
    ("mapping keys are not allowed", "a key cannot start here", "Start the mapping on its own line."),
    ("unknown escape character", "an escape that YAML does not know", "Write \\\\ for a backslash."),
    ("hexdecimal numbers", "an escape without its hexadecimal digits", "Write \\\\ for a backslash."),
    ("hexadecimal", "an escape without its hexadecimal digits", "Write \\\\ for a backslash."),
    ("invalid Unicode character escape", "an escape for half a character", "Write the character itself."),
    ("undefined alias", "an alias (*) to an anchor that does not exist", "Write the anchor (&) before it is used."),
    ("duplicate anchor", "an anchor (&) is declared twice", "Give one of them another name."),
    ("undefined tag handle", "a tag is not supported", "Remove the tag: JSON has none."),
    ("another document", "the text holds several documents", "Put each document into its own file."),
    ("<document start>", "something follows the end of the document", "Remove it, or indent it into the document."),
    ("indentation indicator", "the number after | or > is not an indentation", "Write | or > alone."),
    ("incompatible YAML document", "this version of YAML is not known", "Remove the %YAML line."),
    ("control characters", "a control character", "Remove it."),
)


def unprintable(text: str, file: str) -> SyntaxFault | None:
    if (found := _UNPRINTABLE.search(text)) is None:
        return None
    code = ord(found[0])
    name = "half a surrogate pair" if 0xD800 <= code <= 0xDFFF else f"the control character U+{code:04X}"
    advice = "Remove it; inside double quotes, write it as an escape."
    return SyntaxFault(location_of(text, file, found.start(), found.end()), f"{name} is not allowed", advice)


def fault_of(error: yaml.YAMLError, text: str, file: str) -> SyntaxFault:
    if not isinstance(error, yaml.MarkedYAMLError):
        offset = getattr(error, "position", None)
        place = location_of(text, file, min(offset, len(text)) if isinstance(offset, int) else 0)
        return SyntaxFault(place, str(getattr(error, "reason", error)).partition("\n")[0])
    problem = error.problem or error.context or "it cannot be read"
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(text)) if mark is not None else 0
    if "cannot start any token" in problem and text[at : at + 1] != "\t":
        return SyntaxFault(location_of(text, file, at), f"a value cannot start with {text[at : at + 1]!r}", _QUOTES)
    for part, message, advice in _WORDS:
        if part in problem:
            if "not closed" in message and error.context_mark is not None and not text[at:].strip():
                at = error.context_mark.index  # where it was opened says more than the end of the file
            return SyntaxFault(location_of(text, file, at), message, advice)
    return SyntaxFault(location_of(text, file, at), problem)


class YamlTree(Tree):
    """A YAML document and its nodes."""

    __slots__ = ("_entries", "has_aliases", "root")

    notation = "yaml"

    def __init__(self, data: Any, root: yaml.Node | None, text: str, file: str, *, crlf: bool, aliases: bool) -> None:
        super().__init__(data, text, file, crlf=crlf)
        self.root = root
        self.has_aliases = aliases  # True if aliases repeat a part of the document: a place is then the anchor's
        self._entries: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}

    def entry(self, at: str) -> tuple[yaml.Node | None, yaml.Node] | None:
        """Return the nodes of a key and its value; a list item has no key."""
        if self.root is None:
            return None
        key: yaml.Node | None = None
        node = self.root
        for part in at.split("/")[1:]:
            if isinstance(node, yaml.MappingNode):
                if (found := self._mapping(node).get(unescaped(part))) is None:
                    return None
                key, node = found
            elif isinstance(node, yaml.SequenceNode) and is_index(part, node.value):
                key, node = None, node.value[int(part)]
            else:
                return None
        return key, node

    def _span(self, at: str, *, key: bool) -> Span | None:
        found = self.entry(at)
        if found is None or (key and not at):
            return None
        return node_span(self.text, (key and found[0]) or found[1])

    def _mapping(self, node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        if (entries := self._entries.get(id(node))) is None:
            entries = self._entries[id(node)] = {key.value: (key, value) for key, value in node.value}
        return entries


def parse_yaml(text: str, file: str) -> YamlTree | SyntaxFault:
    text, crlf = trees.plain(text)
    if (refused := trees.too_long(text, file) or unprintable(text, file)) is not None:
        return refused
    with trees.without_collections():
        try:
            root, _ = despite_tab_lines(compose, text, filler=" ")  # edits need the same offsets
            data, aliases = build(root, text)
        except NotationError as reason:
            return reason.fault(text, file)
        except yaml.YAMLError as error:
            return fault_of(error, text, file)
    return YamlTree(data, root, text, file, crlf=crlf, aliases=aliases)


def node_span(text: str, node: yaml.Node) -> Span:
    """Return the span of a node without what libyaml counts after it: a block ends with its last value."""
    start = node.start_mark.index
    last = node
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
        following = last.value[-1]
        if isinstance(following, tuple):
            key, value = following
            following = key if value.start_mark.index < key.start_mark.index else value
        if following.start_mark.index < start:
            break  # an alias as the last thing of a block: its anchor stands elsewhere
        last = following
    # A block text ends with its last line, and blanks in that line belong to it.
    blanks = "\n" if isinstance(last, yaml.ScalarNode) and last.style in {"|", ">"} else None
    return Span(start, start + len(text[start : last.end_mark.index].rstrip(blanks)))
