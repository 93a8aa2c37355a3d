"""A document on the web: its kind, limits and media types, the result of fetching it, and what robots.txt allows."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import quote, unquote

from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.documents.rules import ADDRESS_REFUSED, ROBOTS_DISALLOWED, UNREACHABLE, UNUSABLE_ANSWER
from bespeak.protocol.exchange.headers import essence, is_json
from bespeak.text.diagnostics.diagnostic import Rule

AGENT: Final = "bespeak"  # user agent that site owners use for this program in robots.txt
MOST_ROBOTS: Final = 512_000  # Maximum size; RFC 9309 2.5 requires at least 500 KiB. The rest is ignored.

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


def parse_robots(data: bytes) -> Robots:
    """Parse the rules for this program from a robots.txt. Invalid lines are skipped."""
    text = data[:MOST_ROBOTS].removeprefix(BOM_UTF8).decode(errors="replace")
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
            elif product is not None and product[0].lower() == AGENT:
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


DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """Kind of document: how to request it, and what to accept."""

    what: str
    accept: str
    most: int  # maximum number of decoded bytes
    types: frozenset[str] = frozenset()  # accepted media types besides those of JSON; if empty, all are accepted
    any_type: bool = False
    cut: bool = False  # True if a larger document is truncated instead of rejected
    method: str = "GET"  # POST if the document is the reply of an endpoint: not cached, and redirects are not followed
    default_age: float = 0.0  # seconds of freshness if the server gives none

    def takes(self, media_type: str) -> bool:
        return self.any_type or is_json(media_type) or media_type in self.types


_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"})

DISCOVERY: Final = DocumentKind(what="the discovery document", accept="application/json", most=256_000)
SUMMARY: Final = DocumentKind(what="the AGIS summary", accept="application/json", most=256_000)
MANIFEST: Final = DocumentKind(
    what="the manifest", accept="application/vnd.agtp.manifest+json", most=16_000_000, method="POST"
)
FACE: Final = DocumentKind(what="the face of AGTP", accept="application/vnd.agtp.manifest+json", most=16_000_000)
"""Response of a host to a probe for AGTP over HTTP."""
AGIS: Final = DocumentKind(
    what="the AGIS document",
    accept="application/agis+json, application/agis, application/yaml;q=0.5",
    most=4_000_000,
    types=_YAML | {"application/agis", "text/agis"},
)
OPENAPI: Final = DocumentKind(
    what="the OpenAPI description",
    accept="application/vnd.oai.openapi+json, application/json;q=0.9, application/yaml;q=0.5",
    most=MOST_BYTES,
    types=_YAML | {"application/vnd.oai.openapi", "text/plain"},
)
CARD: Final = DocumentKind(what="the agent card", accept="application/json", most=1_000_000)  # Agent card of A2A
ROBOTS: Final = DocumentKind(
    what="the robots.txt", accept="text/plain", most=MOST_ROBOTS, any_type=True, cut=True, default_age=DAY
)


_Forbidden = Literal["address", "scheme", "credentials", "plain", "private", "downgrade"]
_Unanswered = Literal["name", "connection", "certificate", "timeout", "protocol"]
FaultKind = Literal[_Forbidden, _Unanswered, "redirect", "status", "rate", "robots", "size", "encoding", "type"]
"""Step at which the fetch failed."""

Source = Literal["network", "cache", "revalidated"]  # Requested, cached, or cached and revalidated.

_RULES: Final[dict[FaultKind, Rule]] = {
    **dict.fromkeys(get_args(_Forbidden), ADDRESS_REFUSED),
    **dict.fromkeys(get_args(_Unanswered), UNREACHABLE),
    "robots": ROBOTS_DISALLOWED,
}


@dataclass(frozen=True, slots=True)
class FetchFault:
    kind: FaultKind
    message: str
    url: str  # address that failed; after a redirect it differs from the requested one
    retry_after: float | None = None  # seconds after which the server allows another request

    @property
    def rule(self) -> Rule:
        return _RULES.get(self.kind, UNUSABLE_ANSWER)


@dataclass(frozen=True, slots=True)
class RedirectHop:
    url: str
    status: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    what: str  # name of the document for messages: `the robots.txt`
    url: str
    final_url: str
    status: int | None = None  # last status received, even if the response was unusable
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the last response, with lower-case names and without Set-Cookie; reduced for a cached response."""
    body: bytes = b""  # decoded body, complete if there is no fault
    hops: tuple[RedirectHop, ...] = ()
    attempts: int = 0  # number of requests sent; 0 for a cached response
    seconds: float = 0.0  # total duration, including delays
    first_seconds: float | None = None  # duration of the first response, from the request to the end of the body
    source: Source = "network"
    fault: FetchFault | None = None

    @property
    def ok(self) -> bool:
        return self.fault is None

    @property
    def is_missing(self) -> bool:
        """True if the server reports that the document does not exist."""
        return self.status in (404, 410)

    @property
    def media_type(self) -> str:
        """Media type in lower case, without parameters."""
        return essence(self.headers.get("content-type", ""))
