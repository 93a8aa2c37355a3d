"""Score of a live service: a list of checks with points that add up to 100."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from bespeak.agent.discovery.examination import Examination
from bespeak.agent.discovery.platform_rating import Rating, rate, read_platform_data
from bespeak.checks.lint import served_agreement as agreement
from bespeak.checks.lint import served_answer as answer
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.ai.param_notation import parse_param
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.diagnostics.score import Gain, Part, Score

PARTS: Final = {"connection": 20, "headers": 15, "document": 35, "capabilities": 15, "agreement": 10, "economy": 5}
"""Points of each part."""
_FIVE: Final = 5
"""Number of findings of a kind that costs all its points."""
_WIRE: Final = (
    *(answer.NO_DOCUMENT, answer.NOTHING, answer.CERTIFICATE, answer.STATUS, answer.CREDENTIALS, answer.REDIRECTS),
    *(answer.DOWNGRADE, answer.TOO_LARGE, answer.ENCODING, answer.BROKEN, answer.ROBOTS),
)
"""Rules that report a document which cannot be fetched."""


class _Check(NamedTuple):
    part: str
    points: float
    lost: float
    what: str
    rules: tuple[str, ...] = ()


def score(seen: Examination, findings: Iterable[Diagnostic]) -> Score:
    """Score a host by its documents and by all findings, including those hidden by settings."""
    found = list(findings)
    checks = [*_served(seen, found), *_written(seen, found)]
    parts = [
        Part(name=name, points=of - sum(check.lost for check in checks if check.part == name), of=of)
        for name, of in PARTS.items()
    ]
    gains = [
        Gain(points=check.lost, part=check.part, what=check.what, rules=check.rules) for check in checks if check.lost
    ]
    return Score(
        subject=str(seen.address.origin),
        parts=parts,
        gains=sorted(gains, key=lambda gain: -gain.points),
        rating=_platform_rating(seen),
    )


def _platform_rating(seen: Examination) -> Rating | None:
    """Rate the host as the platform does; None if we have not seen what it would see.

    The platform reads the well-known path and the alias /ai, whichever has JSON, and asks no robots.txt.
    """
    ai = seen.documents.get("ai")
    for fetched in (ai.fetched if ai else None, seen.alias):
        data = read_platform_data(fetched.body) if fetched is not None and fetched.ok else None
        if fetched is not None and data is not None:
            return rate(data, fetched.first_seconds)
    return None


def _served(seen: Examination, found: Sequence[Diagnostic]) -> Iterator[_Check]:
    """Check the responses."""
    ai = seen.documents.get("ai")
    places = {ai.fetched.url, ai.fetched.final_url, str(seen.address.origin)} if ai else set()
    # Headers of other documents do not count.
    broken = {
        finding.rule
        for finding in found
        if finding.location is not None
        and finding.location.file in places
        # Plain http on this machine is reported but does not count.
        and (finding.severity != "info" or finding.rule != answer.PLAIN.id)
    }
    there = seen.there("ai") is not None

    def lost(part: str, points: float, what: str, *rules: Rule, among: set[str] = broken) -> _Check:
        why = _of(among, *rules)
        return _Check(part, points, points if why or not there else 0.0, what, why)

    publish = "Publish /.well-known/ai without authentication, with status 200"
    yield _Check("connection", 6, 0.0 if there else 6.0, publish, _of(broken, *_WIRE))
    reached = ai is not None and ai.fetched.status is not None
    unsafe = _of(broken, answer.PLAIN, answer.CERTIFICATE)
    safe = reached and not unsafe
    yield _Check("connection", 5, 0.0 if safe else 5.0, "Serve https with a valid certificate", unsafe)
    yield lost("connection", 3, "Answer within 3 seconds", answer.SLOW)
    yield lost(
        "connection", 2, "Serve the document without redirects", answer.REDIRECTS, answer.DOWNGRADE, answer.ELSEWHERE
    )
    anywhere = {finding.rule for finding in found}
    soft = _of(anywhere, answer.SOFT_404)
    kept = seen.absent is not None and not soft
    yield _Check("connection", 2, 0.0 if kept else 2.0, "Return 404 for missing paths", soft)
    yield lost("connection", 2, "Let robots.txt allow /.well-known/", answer.ROBOTS)
    yield lost(
        "headers",
        4,
        "Send plain UTF-8 with Content-Type: application/json",
        answer.MEDIA_TYPE,
        answer.UTF8,
        answer.ENCODING,
    )
    yield lost("headers", 2, "Set charset=utf-8 in the Content-Type", answer.CHARSET, answer.MEDIA_TYPE)
    yield lost("headers", 4, "Send Cache-Control: public, max-age=86400", answer.NOT_KEPT, answer.SHORT)
    yield lost("headers", 2, "Send an ETag", answer.VALIDATOR)
    yield lost("headers", 2, "Respond to HEAD as to GET", answer.HEAD)
    yield lost("headers", 1, "Send Access-Control-Allow-Origin: *", answer.CORS)
    yield lost("agreement", 3, "Give the service one name in all documents", agreement.NAMES, among=anywhere)
    described = (answer.ALIAS, agreement.NOT_IN_OPENAPI, agreement.METHODS, agreement.NOT_IN_AGIS)
    summarized = (agreement.LEADS_NOWHERE, agreement.INCOMPLETE)
    same = "Describe the same endpoints in all documents"
    yield lost("agreement", 4, same, *described, *summarized, among=anywhere)
    reached_by = (agreement.ADDRESSES, agreement.OVER_HTTP, agreement.AUTH)
    same = "Use the same authentication and addresses in all documents"
    yield lost("agreement", 3, same, *reached_by, among=anywhere)


def _written(seen: Examination, found: Sequence[Diagnostic]) -> Iterator[_Check]:
    """Check the content of the documents."""
    served = seen.there("ai")
    url = served.fetched.final_url if served is not None else None
    errors, warnings, others = _sorted(found, url)
    usable = seen.ai_data is not None
    verb = "Fix the" if usable else "Publish a document without"
    where = " in the discovery document" if usable else ""
    yield _part(16, errors, usable, f"{verb} errors{where}")
    yield _part(10, warnings, usable, f"{verb} warnings{where}")
    yield _part(4, others, True, "Fix the errors in the other documents")
    document = seen.ai
    yield from _wealth(document)
    yield from _clarity(document)


def _sorted(found: Sequence[Diagnostic], url: str | None) -> tuple[list[str], list[str], list[str]]:
    """Group the broken rules: errors and warnings of the discovery document, errors of the others."""
    errors: list[str] = []
    warnings: list[str] = []
    others: list[str] = []
    for finding in found:
        if finding.rule.startswith("W") or finding.location is None:
            continue
        if finding.location.file != url:
            others += [finding.rule] if finding.severity == "error" else []
        elif finding.severity != "info":
            (errors if finding.severity == "error" else warnings).append(finding.rule)
    return errors, warnings, others


def _part(points: float, wrong: list[str], usable: bool, what: str) -> _Check:
    share = min(len(wrong), _FIVE) / _FIVE if usable else 1.0
    named = tuple(sorted(set(wrong)))
    return _Check("document", points, points * share, what, named)


def _wealth(document: AiDocument | None) -> Iterator[_Check]:
    """Check optional members that help agents to choose a service."""
    for points, said, what in (
        (1, document is not None and document.category, "Set a category of the service"),
        (1, document is not None and document.meta.get("last_updated"), "Set meta.last_updated"),
        (1, document is not None and document.token_hints, "Set token_hints if the endpoints support them"),
        (2, document is not None and document.auth_type, "Set auth, with type none if it is not needed"),
    ):
        yield _Check("document", points, 0.0 if said else points, what)


def _clarity(document: AiDocument | None) -> Iterator[_Check]:
    capabilities = document.capabilities if document is not None else ()
    total = len(capabilities) or 1
    bare = sum(not each.returns for each in capabilities) if capabilities else 1
    yield _Check("capabilities", 5, 5 * bare / total, "List in returns the fields of each capability's result")
    params = [text for each in capabilities for text in each.params.values()]
    loose = sum(not parse_param(text).schema for text in params)
    notation = (loose / len(params) if params else 0.0) if capabilities else 1.0
    yield _Check("capabilities", 5, 5 * notation, "Write params as `type, requirement -- description`")
    vague = sum(not 10 <= len(each.description) <= 150 for each in capabilities) if capabilities else 1
    yield _Check("capabilities", 5, 5 * vague / total, "Describe each capability in 10 to 150 characters")
    about = len(document.description) if document is not None else 0
    yield _Check("economy", 2, 0.0 if 20 <= about <= 150 else 2.0, "Describe the service in 20 to 150 characters")
    mean = sum(len(each.description) for each in capabilities) / total
    brief = bool(capabilities) and mean <= 100
    yield _Check("economy", 3, 0.0 if brief else 3.0, "Describe capabilities in 100 characters, on average")


def _of(broken: set[str], *wanted: Rule) -> tuple[str, ...]:
    return tuple(rule.id for rule in wanted if rule.id in broken)
