"""Invariant: no text makes the path grammar raise, and it accepts exactly what the ABNF of AGTP-API 5.2 derives.

Run `python tools/fuzz/path.py --seconds 60`. It prints how many paths it tried, or the one that broke the invariant.
"""

from __future__ import annotations

import random
import sys
from string import ascii_letters, digits, hexdigits

from campaign import campaign

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import Template, TemplateSet, check_path, check_structure, parse_template
from bespeak.protocol.exchange.refusal import Fault

_ALPHABET = "/{}%-_.~!$&'()*+,;=:@ abCD09éſ\x00\n\ud800?#[]|\\\"<>^`"
_PIECES = ["/", "//", "{id}", "{id", "a{id}", "{}", "%2F", "%zz", "book", "B-o_o-k", "%42OOK", "%C5%BFet", "rooms", "é"]
_LITERAL = frozenset(ascii_letters + digits + "-._~!$&'()*+,;=:@")
_NAME = frozenset(ascii_letters + digits + "_")


def derives(path: str) -> bool:
    """Implement the ABNF a second time, as directly as possible."""
    if path == "/":
        return True
    if not path.startswith("/") or path.endswith("/"):
        return False
    first, *rest = path[1:].split("/")
    return bool(first) and all(_is_parameter(segment) or _is_literal(segment) for segment in (first, *rest))


def _is_parameter(segment: str) -> bool:
    return len(segment) > 2 and segment[0] == "{" and segment[-1] == "}" and set(segment[1:-1]) <= _NAME


def _is_literal(segment: str) -> bool:
    while segment:
        if segment[0] == "%" and len(segment) > 2 and segment[1] in hexdigits and segment[2] in hexdigits:
            segment = segment[3:]
        elif segment[0] in _LITERAL:
            segment = segment[1:]
        else:
            return False
    return True


def overlap(one: Template, other: Template) -> bool:
    """Return True if some path matches both with equally many parameters, comparing segment by segment."""
    return (
        len(one.segments) == len(other.segments)
        and len(one.parameters) == len(other.parameters)
        and all(a is None or b is None or a == b for a, b in zip(one.segments, other.segments, strict=True))
    )


def random_path(source: random.Random) -> str:
    """Return a path, or something close to one."""
    parts = [
        source.choice(_PIECES) if source.random() < 0.6 else source.choice(_ALPHABET)
        for _ in range(source.randrange(12))
    ]
    return ("/" if source.random() < 0.8 else "") + "".join(parts)


def try_path(path: str, verbs: frozenset[str]) -> None:
    """Check one text."""
    fault = check_structure(path)
    assert (fault is None) == derives(path), path
    checked = check_path(path, verbs)
    assert checked is None or checked.at in path or checked.at == path, path
    template = parse_template(path)
    if fault is not None:
        assert isinstance(template, Fault), path
    elif isinstance(template, Template):
        assert "/" + "/".join(s if s is not None else "{}" for s in template.segments) == _blanked(path), path


def _blanked(path: str) -> str:
    return "/".join("{}" if segment.startswith("{") else segment for segment in path.split("/"))


def try_templates(source: random.Random) -> None:
    """Check that a set of templates reports a conflict exactly if comparing all pairs finds one."""
    known = TemplateSet()
    taken: list[Template] = []
    for _ in range(30):
        segments = [source.choice(["a", "b", f"{{p{place}}}"]) for place in range(source.randrange(1, 5))]
        template = parse_template("/" + "/".join(segments))
        assert isinstance(template, Template)
        rival = known.add(template)
        expected = [other for other in taken if overlap(template, other)]
        assert (rival in expected) if expected else rival is None, (template, rival, expected)
        if rival is None:
            taken.append(template)


_VERBS = load_bundled().names


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a hundred paths and one set of templates."""
    for _ in range(100):
        path = random_path(source)
        noted[:] = [path]
        try_path(path, _VERBS)
    try_templates(source)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
