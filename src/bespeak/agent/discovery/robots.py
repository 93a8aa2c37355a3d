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
    groups = _Groups(agent.lower())
    for line in re.split(r"\r\n|\r|\n", text):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            groups.take(key.strip().lower(), value.strip())
    # The groups for all agents apply only if no group names this one.
    named = groups.named
    return Robots(tuple(groups.rules[named]), tuple(groups.preferences[named][:20]))


class _Groups:
    """Rules of all groups that name the agent (True), and of the groups for all agents (False)."""

    def __init__(self, agent: str) -> None:
        self.rules: dict[bool, list[RobotsRule]] = {True: [], False: []}
        self.preferences: dict[bool, list[str]] = {True: [], False: []}
        self.named = False
        self._agent = agent
        self._meant: set[bool] = set()
        self._opening = True

    def take(self, key: str, value: str) -> None:
        if key == "user-agent":
            self._open(value)
        elif key in ("allow", "disallow"):
            self._opening = False
            if value and len(value) <= _LONGEST_RULE:
                for own in self._meant:
                    if len(self.rules[own]) < _MOST_RULES:
                        self.rules[own].append(RobotsRule(key == "allow", _canonical(value)))
        elif key == "content-usage":
            self._opening = False
            for own in self._meant:
                self.preferences[own].append(value[:200])

    def _open(self, value: str) -> None:
        """Start a group, or add a name to it: several names may start one group."""
        if not self._opening:
            self._meant, self._opening = set(), True
        product = _PRODUCT.match(value)
        if value.startswith("*"):
            self._meant.add(False)
        elif product is not None and product[0].lower() == self._agent:
            self._meant.add(True)
            self.named = True


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
