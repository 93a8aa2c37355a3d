"""Parser of robots.txt (RFC 9309)."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

AGENT: Final = "bespeak"  # user agent that site owners use for this program in robots.txt
MOST_BYTES: Final = 512_000  # Maximum size; RFC 9309 2.5 requires at least 500 KiB. The rest is ignored.

_MOST_RULES: Final = 5_000
_LONGEST_RULE: Final = 2_000
_PRODUCT: Final = re.compile(r"[A-Za-z_-]+")
_RESERVED: Final = re.compile(r"(%(?:2[345FAfa]|3[Ff]))")  # They mean something else if not encoded: # $ % * / ?
_SAFE: Final = "/:@!$&'()*+,;=~-._?#[]%"


@dataclass(frozen=True, slots=True)
class RobotsRule:
    allows: bool
    pattern: str


@dataclass(frozen=True, slots=True)
class Robots:
    """Rules that apply to this program."""

    rules: tuple[RobotsRule, ...] = ()
    preferences: tuple[str, ...] = ()  # preferences about the use of the site's content (`Content-Usage`)

    def allows(self, target: str) -> bool:
        """Return True if a path with its query is allowed: the longest matching rule decides, allow on a tie."""
        path = _canonical(target)
        if path == "/robots.txt":
            return True
        best: tuple[int, bool] = (-1, True)
        for rule in self.rules:
            if len(rule.pattern) >= best[0] and _matches(rule.pattern, path):
                best = max(best, (len(rule.pattern), rule.allows))
        return best[1]


ALL_ALLOWED: Final = Robots()


def parse_robots(data: bytes, agent: str = AGENT) -> Robots:
    """Parse the rules for an agent from a robots.txt. Invalid lines are skipped."""
    text = data[:MOST_BYTES].removeprefix(BOM_UTF8).decode(errors="replace")
    # What the groups say that name the agent (True), and those for all agents (False).
    rules: dict[bool, list[RobotsRule]] = {True: [], False: []}
    preferences: dict[bool, list[str]] = {True: [], False: []}
    named, opening, meant = False, True, set[bool]()
    for line in re.split(r"\r\n|\r|\n", text):
        key, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if colon and key.lower() == "user-agent":
            # Several names may start one group.
            meant, opening = meant if opening else set(), True
            product = _PRODUCT.match(value)
            if value.startswith("*"):
                meant.add(False)
            elif product is not None and product[0].lower() == agent.lower():
                meant.add(True)
                named = True
        elif colon and key.lower() in ("allow", "disallow", "content-usage"):
            opening = False
            for own in meant:
                if key.lower() == "content-usage":
                    preferences[own].append(value[:200])
                elif value and len(value) <= _LONGEST_RULE and len(rules[own]) < _MOST_RULES:
                    rules[own].append(RobotsRule(key.lower() == "allow", _canonical(value)))
    # The groups for all agents apply only if no group names this one.
    return Robots(tuple(rules[named]), tuple(preferences[named][:20]))


def _canonical(text: str) -> str:
    """Normalise the percent-encoding of a path (RFC 9309 2.2.2)."""
    if not text.startswith(("/", "*", "$")):
        text = f"/{text}"
    # Of the parts, every second one is what the pattern matched.
    parts = enumerate(_RESERVED.split(text))
    return "".join(part.upper() if number % 2 else quote(unquote(part), safe=_SAFE) for number, part in parts)


def _matches(pattern: str, path: str) -> bool:
    """Match a pattern with `*` and a final `$` against the start of a path, in time linear in each."""
    ends = pattern.endswith("$")
    first, *others = (pattern.removesuffix("$") if ends else pattern).split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    if not others:
        return not ends or at == len(path)
    *middle, last = others
    for piece in middle:
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(path) - at >= len(last) and path.endswith(last) if ends else path.find(last, at) >= 0
