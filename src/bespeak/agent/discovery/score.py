"""Score of a live service, 100 points in all, and the rating that the public platform would give its document."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bespeak.agent.discovery.examination import HostExamination
from bespeak.checks.lint import served
from bespeak.documents.ai.document import METHODS, AiDocument
from bespeak.documents.ai.param_notation import parse_param
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.diagnostics.report import Gain, Score, ScorePart
from bespeak.text.reading.table import as_list, as_mapping

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
    *(served.NO_DOCUMENT, served.NOTHING, served.CERTIFICATE, served.STATUS, served.CREDENTIALS, served.REDIRECTS),
    *(served.DOWNGRADE, served.TOO_LARGE, served.ENCODING, served.BROKEN, served.ROBOTS),
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
        and (finding.severity != "info" or finding.rule != served.PLAIN.id)
    }
    there = seen.there("ai") is not None

    def lost(part: str, points: float, what: str, *rules: Rule, among: set[str] = broken) -> _ScoredCheck:
        why = _of(among, *rules)
        return _ScoredCheck(part, points, points if why or not there else 0.0, what, why)

    publish = "Publish /.well-known/ai without authentication, with status 200"
    yield _ScoredCheck("connection", 6, 0.0 if there else 6.0, publish, _of(broken, *_WIRE))
    unsafe = _of(broken, served.PLAIN, served.CERTIFICATE)
    safe = ai is not None and ai.fetched.status is not None and not unsafe
    yield _ScoredCheck("connection", 5, 0.0 if safe else 5.0, "Serve https with a valid certificate", unsafe)
    yield lost("connection", 3, "Answer within 3 seconds", served.SLOW)
    moved = "Serve the document without redirects"
    yield lost("connection", 2, moved, served.REDIRECTS, served.DOWNGRADE, served.ELSEWHERE)
    anywhere = {finding.rule for finding in found}
    soft = _of(anywhere, served.SOFT_404)
    kept = seen.absent is not None and not soft
    yield _ScoredCheck("connection", 2, 0.0 if kept else 2.0, "Return 404 for missing paths", soft)
    yield lost("connection", 2, "Let robots.txt allow /.well-known/", served.ROBOTS)
    coded = (served.MEDIA_TYPE, served.UTF8, served.ENCODING)
    yield lost("headers", 4, "Send plain UTF-8 with Content-Type: application/json", *coded)
    yield lost("headers", 2, "Set charset=utf-8 in the Content-Type", served.CHARSET, served.MEDIA_TYPE)
    yield lost("headers", 4, "Send Cache-Control: public, max-age=86400", served.NOT_KEPT, served.SHORT)
    yield lost("headers", 2, "Send an ETag", served.VALIDATOR)
    yield lost("headers", 2, "Respond to HEAD as to GET", served.HEAD)
    yield lost("headers", 1, "Send Access-Control-Allow-Origin: *", served.CORS)
    yield lost("agreement", 3, "Give the service one name in all documents", served.NAMES, among=anywhere)
    unlike = (served.ALIAS, served.NOT_IN_OPENAPI, served.METHODS, served.NOT_IN_AGIS)
    summary = (served.LEADS_NOWHERE, served.INCOMPLETE)
    yield lost("agreement", 4, "Describe the same endpoints in all documents", *unlike, *summary, among=anywhere)
    same = "Use the same authentication and addresses in all documents"
    yield lost("agreement", 3, same, served.ADDRESSES, served.OVER_HTTP, served.AUTH, among=anywhere)


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
