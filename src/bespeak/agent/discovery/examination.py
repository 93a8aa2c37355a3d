"""All documents of a live service, collected for a check, and the score of the service by them and the findings."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.lookup import ALIAS, OPENAPI_PLACES, WELL_KNOWN_AGIS, WELL_KNOWN_AI
from bespeak.agent.discovery.readers import agis_tree, read_ai_document
from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, OPENAPI, SUMMARY, DocumentKind, Fetched, FetchFault
from bespeak.checks.lint import served as rules
from bespeak.documents.agis.document import AgisDocument, read_agis
from bespeak.documents.ai.document import METHODS, AiDocument
from bespeak.documents.ai.param_notation import parse_param
from bespeak.documents.openapi.description import Description
from bespeak.protocol.address_guard import AddressFault, WebAddress, parse_web_address, resolve_address
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.diagnostics.report import Gain, Score, ScorePart
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.table import as_list, as_mapping
from bespeak.text.source.tree import Tree

Name = Literal["ai", "summary", "agis", "openapi", "agtp", "llms"]

BUDGET: Final = 40.0  # seconds for all documents of a host; a started request may finish
LONGEST: Final = 20.0  # seconds for one document, including every robots.txt needed on the way
WELL_KNOWN_AGTP: Final = "/.well-known/agtp"
LLMS: Final = "/llms.txt"
ABSENT: Final = "/.well-known/bespeak-asks-what-is-not-there"  # path that no service has
PLACES: Final = frozenset({"/", WELL_KNOWN_AI, WELL_KNOWN_AGIS, WELL_KNOWN_AGTP, OPENAPI_PLACES[0], LLMS, ALIAS})
"""Paths that a user may type after the host; each means the whole host."""

_LLMS: Final = DocumentKind(
    what="the llms.txt",
    accept="text/plain, text/markdown;q=0.9",
    most=1_000_000,
    types=frozenset({"text/plain", "text/markdown"}),
)
_ABSENT: Final = DocumentKind(what="a document that is not there", accept="*/*", most=64_000, any_type=True, cut=True)
# Any media type is read: a wrong type and wrong content are separate findings.
_DOCUMENTS: Final[Mapping[Name, tuple[str, DocumentKind]]] = {
    "ai": (WELL_KNOWN_AI, replace(DISCOVERY, any_type=True)),
    "summary": (WELL_KNOWN_AGIS, replace(SUMMARY, any_type=True)),
    "agis": ("/", replace(AGIS, most=1_000_000)),
    "openapi": (OPENAPI_PLACES[0], replace(OPENAPI, most=8_000_000)),
    "agtp": (WELL_KNOWN_AGTP, DocumentKind(what="the AGTP bootstrap", accept="application/json", most=64_000)),
    "llms": (LLMS, _LLMS),
}
"""Path and kind of each document. The AGIS document is elsewhere if the summary says so."""
_ALIAS: Final = replace(DISCOVERY, any_type=True, what="the alias /ai")
_PAGES: Final = ("text/html", "application/xhtml+xml")  # what catch-all hosts send for every path
_UNREACHED: Final = frozenset({"address", "scheme", "credentials", "plain", "private", "name", "connection", "timeout"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    name: Name
    fetched: Fetched
    is_there: bool  # True if the response is meant to be this document, valid or not
    head: Fetched | None = None  # response to HEAD, if it was sent

    @property
    def text(self) -> str | None:
        """Text without a byte order mark; None if it is not UTF-8."""
        try:
            return self.fetched.body.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None


@dataclass(slots=True, kw_only=True)
class HostExamination:
    address: WebAddress
    documents: dict[Name, Served] = field(default_factory=dict)  # all requested documents, including missing ones
    alias: Fetched | None = None
    absent: Fetched | None = None  # response to a path that does not exist
    unreachable: FetchFault | None = None  # reason why the host could not be reached
    unasked: list[str] = field(default_factory=list)  # documents that were skipped because the time was up
    ai: AiDocument | None = None  # discovery document as an agent reads it, with all its capabilities
    ai_data: Mapping[str, Any] | None = None  # members of the discovery document, valid or not
    summary: Mapping[str, Any] | None = None
    summary_fault: str = ""  # reason why the document that the summary names was rejected
    agis: AgisDocument | None = None
    openapi: Description | None = None
    bootstrap: Mapping[str, Any] | None = None  # members of /.well-known/agtp
    found: list[Diagnostic] = field(default_factory=list)  # findings of the readers that no other check reports

    def there(self, name: Name) -> Served | None:
        """Return a document if the host has it."""
        served = self.documents.get(name)
        return served if served is not None and served.is_there else None


class Examiner:
    """Examines hosts. It only fetches documents, one after the other, and never calls a capability."""

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        longest: float = LONGEST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher
        self._longest = longest
        self._clock = clock
        self._until = 0.0

    async def examine(self, address: WebAddress) -> HostExamination:
        """Fetch everything there is to check of a host. Never raises for what a server does."""
        seen = HostExamination(address=address)
        self._until = self._clock() + BUDGET
        first = await self._ask(seen, "ai")
        fault = first.fault if first is not None else None
        if first is not None and fault is not None and fault.kind in _UNREACHED and not first.hops:
            seen.unreachable = fault
        if seen.unreachable or (fault is not None and fault.kind == "certificate"):
            return seen
        if (served := seen.there("ai")) is not None:
            seen.ai_data = _members(seen, "ai")
            seen.ai, _ = read_ai_document(served.fetched.body, served.fetched.final_url, most=None)
        await self._ask(seen, "summary")
        await self._find_agis(seen)
        await self._ask(seen, "openapi")
        if (served := seen.there("openapi")) is not None:
            from bespeak.documents.openapi.reader import read_description  # noqa: PLC0415 - few services have one

            url = served.fetched.final_url
            seen.openapi, wrong = read_description(served.fetched.body, url, base_url=url)
            seen.found += [replace(finding, severity="warning") for finding in wrong[:1] if seen.openapi is None]
        await self._ask(seen, "agtp")
        seen.bootstrap = _members(seen, "agtp")
        await self._ask(seen, "llms")
        await self._look_behind(seen)
        return seen

    async def _look_behind(self, seen: HostExamination) -> None:
        """Fetch the same documents by HEAD and under the alias, and a path that does not exist."""
        for name, served in list(seen.documents.items()):
            if served.is_there:
                accept = _DOCUMENTS[name][1].accept
                kind = DocumentKind(served.fetched.what, accept, most=1 << 40, any_type=True, method="HEAD")
                seen.documents[name] = replace(served, head=await self._get(seen, served.fetched.final_url, kind))
        # The alias is checked only if the host has the document (ai-discovery-01 4), or if the user names it.
        if seen.there("ai") is not None or seen.address.path == ALIAS:
            seen.alias = await self._get(seen, f"{seen.address.origin}{ALIAS}", _ALIAS)
        seen.absent = await self._get(seen, f"{seen.address.origin}{ABSENT}", _ABSENT)

    async def _ask(self, seen: HostExamination, name: Name) -> Fetched | None:
        place, kind = _DOCUMENTS[name]
        fetched = await self._get(seen, f"{seen.address.origin}{place}", kind)
        if fetched is not None:
            is_there = fetched.ok and fetched.media_type not in _PAGES
            seen.documents[name] = Served(name=name, fetched=fetched, is_there=is_there)
        return fetched

    async def _get(self, seen: HostExamination, url: str, kind: DocumentKind) -> Fetched | None:
        if self._clock() >= self._until:
            seen.unasked.append(f"{kind.method} {url}" if kind.method != "GET" else url)
            return None
        try:
            async with asyncio.timeout(self._longest):
                return await self._fetcher.get(url, kind)
        except TimeoutError:
            fault = FetchFault("timeout", f"no document within {self._longest:g} seconds", url)
            return Fetched(what=kind.what, url=url, final_url=url, fault=fault)

    async def _find_agis(self, seen: HostExamination) -> None:
        """Find the AGIS document: where the summary says if that is on this host, else as the reply of the root."""
        place, kind = _DOCUMENTS["agis"]
        if (served := seen.there("summary")) is not None:
            seen.summary = _members(seen, "summary")
            if seen.summary is not None:
                place = self._named(seen, served.fetched) or place
        fetched = await self._get(seen, f"{seen.address.origin}{place}", kind)
        if fetched is None:
            return
        seen.agis = document = _agis(fetched) if fetched.ok else None
        # The root of most hosts is an unrelated page, which is not a fault.
        if document is not None or not fetched.ok:
            seen.documents["agis"] = Served(name="agis", fetched=fetched, is_there=document is not None)
        if document is None and seen.summary is not None and not seen.summary_fault:
            reason = fetched.fault.message if fetched.fault else "the response is not an AGIS document"
            seen.summary_fault = f"{fetched.url}: {reason}"

    def _named(self, seen: HostExamination, fetched: Fetched) -> str | None:
        """Return the path that agis.json names, if it is on this host."""
        named = (seen.summary or {}).get("agis_document")
        if not isinstance(named, str) or not named.strip():
            seen.summary_fault = "agis_document is missing"
            return None
        if named.startswith("agtp://"):
            return None
        base = parse_web_address(fetched.final_url, insecure=True)
        place = base if isinstance(base, AddressFault) else resolve_address(named, base, insecure=True)
        if isinstance(place, AddressFault):
            seen.summary_fault = f"agis_document: {place.message}"
            return None
        # The named host may be the public name of this one, but an untrusted document is no reason to contact it.
        return place.target if place.origin == seen.address.origin else None


def _members(seen: HostExamination, name: Name) -> Mapping[str, Any] | None:
    """Return the members of a JSON document that exists. Report why it has none, unless lint does."""
    served = seen.there(name)
    if served is None:
        return None
    root = json_table(served.fetched.body, served.fetched.final_url, tolerant=True)
    if not isinstance(root, Diagnostic):
        return root.data
    if name != "ai":
        seen.found.append(root)
    return None


def _agis(fetched: Fetched) -> AgisDocument | None:
    """Parse the AGIS document in a response; return None if it is something else."""
    tree = agis_tree(fetched)
    # The summary says `agis`, too, and has no endpoints.
    return read_agis(tree)[0] if isinstance(tree, Tree) and "endpoints" in tree.data else None


_GRADES: Final = ((90, "Excellent"), (70, "Good"), (50, "Basic"), (0, "Poor"))
_SECONDS: Final = 3.0  # limit of the platform for a response; a later one counts as none
_NEEDED: Final = ("id", "description", "endpoint", "method")
_WITH: Final = re.compile(r"\bwith\b", re.ASCII)


class Rating(NamedTuple):
    points: int
    grade: str


def read_platform_data(body: bytes) -> object:
    """Parse a document as the platform does: any media type, and the last of repeated keys; None if it is not JSON."""
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def rate(data: object, seconds: float | None) -> Rating:
    """Rate a document by its members and response time; None is a missing document."""
    if not _holds(data) or (seconds is not None and seconds > _SECONDS):
        return _rating(0)
    if not isinstance(data, dict):
        return _rating(15)
    service = as_mapping(data.get("service"))
    capabilities = [as_mapping(entry) for entry in as_list(data.get("capabilities"))]
    category = service.get("category")
    points = 15 + 9 * _holds(data.get("aiendpoint")) + 8 * bool(capabilities) + _quality(capabilities)
    points += 9 * _is_text(service.get("name")) + 9 * _is_text(service.get("description"))
    points += 5 * (isinstance(category, list) and bool(category))
    points += 5 * _holds(data.get("auth")) + 5 * _holds(as_mapping(data.get("meta")).get("last_updated"))
    return _rating(points + _economy(data, _length(service.get("description")), capabilities))


def is_specific(returns: object) -> bool:
    """Return True if a `returns` text names fields, as the platform judges it."""
    # JavaScript writes a list with commas, and any object as this.
    text = "[object Object]" if isinstance(returns, dict) else returns
    text = ",".join(map(str, text)) if isinstance(text, list) else text if isinstance(text, str) else ""
    return len(text) > 5 and ("," in text or "[" in text or _WITH.search(text) is not None)


def _rating(points: int) -> Rating:
    return Rating(points, next(grade for least, grade in _GRADES if points >= least))


def _quality(capabilities: list[dict[str, Any]]) -> int:
    if not capabilities:
        return 0
    each = (
        5 + 2 * (entry["method"] in METHODS) + 3 * _holds(entry.get("returns"))
        for entry in capabilities
        if all(_holds(entry.get(key)) for key in _NEEDED)
    )
    return _round(20 * sum(each) / (10 * len(capabilities)))


def _economy(data: Mapping[str, Any], described: int, capabilities: list[dict[str, Any]]) -> int:
    points = 4 if 20 <= described <= 150 else 2 if described else 0
    points += 4 * _holds(data.get("token_hints"))
    if capabilities:
        mean = sum(_length(entry.get("description")) for entry in capabilities) / len(capabilities)
        points += 3 if 10 <= mean <= 100 else 1 if mean > 100 else 0
        points += _round(4 * sum(is_specific(entry.get("returns")) for entry in capabilities) / len(capabilities))
    return points


def _holds(value: object) -> bool:
    """Return True if JavaScript takes the value for true: every object and array, even an empty one."""
    return isinstance(value, dict | list) or bool(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _round(value: float) -> int:
    """Round halves up, as JavaScript does."""
    return math.floor(value + 0.5)


def _length(value: object) -> int:
    """Return the length of a text in UTF-16 units, as JavaScript counts; 0 for anything else."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(value, str) else 0


PARTS: Final = {"connection": 20, "headers": 15, "document": 35, "capabilities": 15, "agreement": 10, "economy": 5}
"""Points of each part."""
_FIVE: Final = 5  # number of findings of a kind that costs all its points
_WIRE: Final = (  # Rules that report a document which cannot be fetched.
    *(rules.NO_DOCUMENT, rules.NOTHING, rules.CERTIFICATE, rules.STATUS, rules.CREDENTIALS, rules.REDIRECTS),
    *(rules.DOWNGRADE, rules.TOO_LARGE, rules.ENCODING, rules.BROKEN, rules.ROBOTS),
)


class _ScoredCheck(NamedTuple):
    part: str
    points: float
    lost: float
    what: str
    rules: tuple[str, ...] = ()


def score(seen: HostExamination, findings: Iterable[Diagnostic]) -> Score:
    """Score a host by its documents and by all findings, including those hidden by settings."""
    found = list(findings)
    checks = [*_served(seen, found), *_written(seen, found)]
    parts = [
        ScorePart(name=name, points=of - sum(check.lost for check in checks if check.part == name), of=of)
        for name, of in PARTS.items()
    ]
    gains = [Gain(points=one.lost, part=one.part, what=one.what, rules=one.rules) for one in checks if one.lost]
    gains.sort(key=lambda gain: -gain.points)
    return Score(subject=str(seen.address.origin), parts=parts, gains=gains, rating=_platform_rating(seen))


def _platform_rating(seen: HostExamination) -> Rating | None:
    """Rate the host as the platform does; None if we have not seen what it would see.

    The platform reads the well-known path and the alias /ai, whichever has JSON, and asks no robots.txt.
    """
    ai = seen.documents.get("ai")
    for fetched in (ai.fetched if ai else None, seen.alias):
        data = read_platform_data(fetched.body) if fetched is not None and fetched.ok else None
        if fetched is not None and data is not None:
            return rate(data, fetched.first_seconds)
    return None


def _served(seen: HostExamination, found: Sequence[Diagnostic]) -> Iterator[_ScoredCheck]:
    ai = seen.documents.get("ai")
    places = {ai.fetched.url, ai.fetched.final_url, str(seen.address.origin)} if ai else set()
    # Headers of other documents do not count.
    broken = {
        finding.rule
        for finding in found
        if finding.location is not None
        and finding.location.file in places
        # Plain http on this machine is reported but does not count.
        and (finding.severity != "info" or finding.rule != rules.PLAIN.id)
    }
    there = seen.there("ai") is not None

    def lost(part: str, points: float, what: str, *rules: Rule, among: set[str] = broken) -> _ScoredCheck:
        why = _of(among, *rules)
        return _ScoredCheck(part, points, points if why or not there else 0.0, what, why)

    publish = "Publish /.well-known/ai without authentication, with status 200"
    yield _ScoredCheck("connection", 6, 0.0 if there else 6.0, publish, _of(broken, *_WIRE))
    unsafe = _of(broken, rules.PLAIN, rules.CERTIFICATE)
    safe = ai is not None and ai.fetched.status is not None and not unsafe
    yield _ScoredCheck("connection", 5, 0.0 if safe else 5.0, "Serve https with a valid certificate", unsafe)
    yield lost("connection", 3, "Answer within 3 seconds", rules.SLOW)
    moved = "Serve the document without redirects"
    yield lost("connection", 2, moved, rules.REDIRECTS, rules.DOWNGRADE, rules.ELSEWHERE)
    anywhere = {finding.rule for finding in found}
    soft = _of(anywhere, rules.SOFT_404)
    kept = seen.absent is not None and not soft
    yield _ScoredCheck("connection", 2, 0.0 if kept else 2.0, "Return 404 for missing paths", soft)
    yield lost("connection", 2, "Let robots.txt allow /.well-known/", rules.ROBOTS)
    coded = (rules.MEDIA_TYPE, rules.UTF8, rules.ENCODING)
    yield lost("headers", 4, "Send plain UTF-8 with Content-Type: application/json", *coded)
    yield lost("headers", 2, "Set charset=utf-8 in the Content-Type", rules.CHARSET, rules.MEDIA_TYPE)
    yield lost("headers", 4, "Send Cache-Control: public, max-age=86400", rules.NOT_KEPT, rules.SHORT)
    yield lost("headers", 2, "Send an ETag", rules.VALIDATOR)
    yield lost("headers", 2, "Respond to HEAD as to GET", rules.HEAD)
    yield lost("headers", 1, "Send Access-Control-Allow-Origin: *", rules.CORS)
    yield lost("agreement", 3, "Give the service one name in all documents", rules.NAMES, among=anywhere)
    unlike = (rules.ALIAS, rules.NOT_IN_OPENAPI, rules.METHODS, rules.NOT_IN_AGIS)
    summary = (rules.LEADS_NOWHERE, rules.INCOMPLETE)
    yield lost("agreement", 4, "Describe the same endpoints in all documents", *unlike, *summary, among=anywhere)
    same = "Use the same authentication and addresses in all documents"
    yield lost("agreement", 3, same, rules.ADDRESSES, rules.OVER_HTTP, rules.AUTH, among=anywhere)


def _written(seen: HostExamination, found: Sequence[Diagnostic]) -> Iterator[_ScoredCheck]:
    served = seen.there("ai")
    errors, warnings, others = _sorted(found, served.fetched.final_url if served is not None else None)
    usable = seen.ai_data is not None
    verb = "Fix the" if usable else "Publish a document without"
    where = " in the discovery document" if usable else ""
    yield _part(16, errors, usable, f"{verb} errors{where}")
    yield _part(10, warnings, usable, f"{verb} warnings{where}")
    yield _part(4, others, True, "Fix the errors in the other documents")
    document = seen.ai
    for points, said, what in (
        (1, document is not None and document.category, "Set a category of the service"),
        (1, document is not None and document.meta.get("last_updated"), "Set meta.last_updated"),
        (1, document is not None and document.token_hints, "Set token_hints if the endpoints support them"),
        (2, document is not None and document.auth_type, "Set auth, with type none if it is not needed"),
    ):
        yield _ScoredCheck("document", points, 0.0 if said else points, what)
    yield from _clarity(seen.ai)


def _sorted(found: Sequence[Diagnostic], url: str | None) -> tuple[list[str], list[str], list[str]]:
    """Group the broken rules: errors and warnings of the discovery document, errors of the others."""
    checked = [one for one in found if not one.rule.startswith("W")]
    placed = [(one.location.file == url, one.severity, one.rule) for one in checked if one.location is not None]
    kinds = ((True, "error"), (True, "warning"), (False, "error"))
    errors, warnings, others = ([rule for *place, rule in placed if tuple(place) == kind] for kind in kinds)
    return errors, warnings, others


def _part(points: float, wrong: list[str], usable: bool, what: str) -> _ScoredCheck:
    share = min(len(wrong), _FIVE) / _FIVE if usable else 1.0
    return _ScoredCheck("document", points, points * share, what, tuple(sorted(set(wrong))))


def _clarity(document: AiDocument | None) -> Iterator[_ScoredCheck]:
    capabilities = document.capabilities if document is not None else ()
    total = len(capabilities) or 1
    bare = sum(not each.returns for each in capabilities) if capabilities else 1
    yield _ScoredCheck("capabilities", 5, 5 * bare / total, "List in returns the fields of each capability's result")
    params = [text for each in capabilities for text in each.params.values()]
    loose = sum(not parse_param(text).schema for text in params)
    notation = (loose / len(params) if params else 0.0) if capabilities else 1.0
    yield _ScoredCheck("capabilities", 5, 5 * notation, "Write params as `type, requirement -- description`")
    vague = sum(not 10 <= len(each.description) <= 150 for each in capabilities) if capabilities else 1
    yield _ScoredCheck("capabilities", 5, 5 * vague / total, "Describe each capability in 10 to 150 characters")
    about = len(document.description) if document is not None else 0
    yield _ScoredCheck("economy", 2, 0.0 if 20 <= about <= 150 else 2.0, "Describe the service in 20 to 150 characters")
    mean = sum(len(each.description) for each in capabilities) / total
    brief = bool(capabilities) and mean <= 100
    yield _ScoredCheck("economy", 3, 0.0 if brief else 3.0, "Describe capabilities in 100 characters, on average")


def _of(broken: set[str], *wanted: Rule) -> tuple[str, ...]:
    return tuple(rule.id for rule in wanted if rule.id in broken)
