"""Composing YAML nodes with libyaml, within bounds: libyaml's own recursion would overflow the stack."""

from __future__ import annotations

from typing import Any, Final

import yaml

from bespeak.source.refused import Refused
from bespeak.source.tree import MAX_DEPTH, MAX_NODES

STRING: Final = "tag:yaml.org,2002:str"


class _Bounded:
    """What the composer calls for each node. A node without a tag keeps an empty one: `yaml_data` decides its type."""

    depth: int
    count: int

    def start_counting(self) -> None:
        self.depth = self.count = 0

    def descend_resolver(self, above: Any, index: Any) -> None:
        self.count += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"lists and mappings are nested more than {MAX_DEPTH} levels deep"
            raise _too_much(above, message, "Give the inner part a name of its own under `schemas`.")
        if self.count > MAX_NODES:
            message = f"the document has more than {MAX_NODES:,} keys and values"
            raise _too_much(above, message, "Split it into several documents.")

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and not implicit[0]:
            return STRING
        return ""


if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _Loader(_Bounded, CParser):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            self.start_counting()
else:
    from yaml.composer import Composer
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Loader(_Bounded, Reader, Scanner, Parser, Composer):  # type: ignore[no-redef]
        def __init__(self, text: str) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)
            self.start_counting()


def compose(text: str) -> yaml.Node | None:
    """The root node of the only document in a text; None if there is nothing but comments."""
    loader = _Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def _too_much(above: Any, message: str, advice: str) -> Refused:
    start = above.start_mark.index
    return Refused(start, start + 1, message, advice)
