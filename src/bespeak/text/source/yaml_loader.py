"""Composition of YAML nodes with libyaml, within bounds: libyaml's own recursion would overflow the stack."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any, Final, TypeVar

import yaml

from bespeak.text.source.tree import MAX_DEPTH, MAX_NODES, NotationError

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
            if len(inside) > MAX_DEPTH + 1:
                raise _too_deep(above)
            if number() > MAX_NODES:
                raise _too_much(above)

        def resolve(kind: Any, _: Any, implicit: Any) -> str:
            """Keep an empty tag for a node without one: `yaml_data` decides its type."""
            if kind is yaml.ScalarNode:
                return "" if implicit[0] else STRING
            if len(inside) > MAX_DEPTH:
                raise _too_deep(inside[-1])
            return ""

        self.descend_resolver = descend
        self.ascend_resolver = inside.pop
        self.resolve = resolve


def without_tab_lines(text: str, filler: str = "") -> str:
    """Replace the blanks of lines that consist of blanks with tabs; `filler` replaces each of them.

    YAML 1.2 accepts such lines, libyaml refuses them where it expects indentation. Without a filler, lines and columns
    of all other lines stay the same. With a space, offsets stay the same too, but such a line must not be longer than
    the indentation of a block text that begins with it.
    """
    return _TAB_LINE.sub(lambda found: filler * len(found.group()), text)


def despite_tab_lines(read: Callable[[str], _T], text: str, filler: str = "") -> tuple[_T, str]:
    """Read a text, if necessary without the tabs in lines of blanks; return what was read, and the text it was in."""
    try:
        return read(text), text
    except yaml.YAMLError as error:
        plain = without_tab_lines(text, filler)
        if plain == text:
            raise
        try:
            return read(plain), plain
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
    message = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"
    return NotationError(start, start + 1, message, "Give the inner part a name of its own under `schemas`.")


def _too_much(above: Any) -> NotationError:
    start = above.start_mark.index
    message = f"the document has more than {MAX_NODES:,} keys and values"
    return NotationError(start, start + 1, message, "Split it into several documents.")
