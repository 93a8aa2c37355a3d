"""Check of a live service: rules on its documents, rules on its responses, and the score."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.agent.discovery.examination import PLACES, Examiner, HostExamination, Name, Served, score
from bespeak.agent.discovery.lookup import WELL_KNOWN_AI
from bespeak.agent.discovery.readers import Capability, ai_capabilities, openapi_capabilities
from bespeak.agent.discovery.web_document import FaultKind, Fetched
from bespeak.checks.lint import served as rules
from bespeak.checks.lint.document import Checked, check_text
from bespeak.checks.lint.subject import Kind, LintContext
from bespeak.contract.http_route import split_verb
from bespeak.documents.rules import CAPABILITY_ELSEWHERE
from bespeak.protocol.address import AUTHORITY
from bespeak.protocol.address_guard import AddressFault, WebAddress, is_loopback, parse_web_address
from bespeak.protocol.exchange.headers import is_json
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.diagnostics.report import Score
from bespeak.text.reading.table import as_text
from bespeak.text.source.tree import Location

MEMBERS: Final = (  # Required members of agis.json (AGIS 11.1); `mcp_tools_list` is optional.
    *("agis", "service", "agtp", "agis_document", "methods", "domain", "namespace", "negotiable"),
    *("capability_summary", "data_classes", "pre_auth_discovery", "version", "interaction_protocols"),
    "related_services",
)
_MOST: Final = 5  # maximum number of names in a message
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")


def check_agreement(seen: HostExamination) -> Iterator[Diagnostic]:
    """Find contradictions between two documents, or within one."""
    yield from seen.found
    yield from _check_names(seen)
    yield from _check_summary(seen)
    yield from _check_addresses(seen)
    base, capabilities = parse_web_address(_url(seen, "ai"), insecure=True), list[Capability]()
    if seen.ai is not None and isinstance(base, WebAddress):
        capabilities, _ = ai_capabilities(seen.ai, base, insecure=True)
    elsewhere = {str(each.origin) for each in capabilities if each.origin.host != seen.address.origin.host}
    if elsewhere:
        message = f"capabilities are at {_some(elsewhere)}, where agents do not send the credential for this host"
        yield CAPABILITY_ELSEWHERE.found(message, Location(_url(seen, "ai")))
    yield from _check_openapi(seen, capabilities)
    yield from _check_agis(seen, capabilities)


def _at(rule: Rule, seen: HostExamination, name: Name, message: str, advice: str) -> Diagnostic:
    return rule.found(message, Location(_url(seen, name)), advice=advice)


def _url(seen: HostExamination, name: Name) -> str:
    served = seen.documents.get(name)
    return served.fetched.final_url if served is not None else str(seen.address.origin)


def _check_names(seen: HostExamination) -> Iterator[Diagnostic]:
    said: dict[Name, str] = {
        "ai": seen.ai.name if seen.ai else "",
        "summary": as_text((seen.summary or {}).get("service")),
        "agis": seen.agis.service if seen.agis else "",
        "openapi": seen.openapi.title if seen.openapi else "",
    }
    named = [(name, text) for name, text in said.items() if text.strip()]
    for name, text in named[1:]:
        first, other = named[0]
        if text.split() != other.split():
            message = f"the service is named {brief(text)} here but {brief(other)} in {_url(seen, first)}"
            yield _at(rules.NAMES, seen, name, message, "Use one name.")


def _check_summary(seen: HostExamination) -> Iterator[Diagnostic]:
    summary = seen.summary
    if summary is None:
        return
    missing = [name for name in MEMBERS if name not in summary]
    if missing:
        message = f"agis.json lacks {', '.join(missing)}"
        yield _at(rules.INCOMPLETE, seen, "summary", message, "Write every member; use null for an unknown value.")
    if seen.summary_fault:
        message = f"agis.json does not lead to an AGIS document: {seen.summary_fault}"
        yield _at(rules.LEADS_NOWHERE, seen, "summary", message, "Write the address where it is served.")
    methods = summary.get("methods")
    if seen.agis is not None and isinstance(methods, list):
        here = {method.upper() for method in methods if isinstance(method, str)}
        there = {entry.endpoint.method.upper() for entry in seen.agis.endpoints}
        if here != there:
            message = f"agis.json and the AGIS document differ in {_some(here ^ there)}"
            yield _at(rules.METHODS, seen, "summary", message, "List the methods of the document.")


def _check_addresses(seen: HostExamination) -> Iterator[Diagnostic]:
    endpoint = (seen.bootstrap or {}).get("endpoint")
    said: dict[Name, object] = {
        "summary": (seen.summary or {}).get("agtp"),
        "agis": seen.agis.agtp if seen.agis else None,
        "agtp": f"agtp://{endpoint}" if isinstance(endpoint, str) else None,
    }
    found = {name: AUTHORITY.match(str(text)) for name, text in said.items()}
    hosts = [(name, place["host"].lower()) for name, place in found.items() if place and place["host"]]
    for name, host in hosts[1:]:
        first, other = hosts[0]
        if host != other:
            message = f"AGTP is at {brief(host)} in this document but at {brief(other)} in {_url(seen, first)}"
            yield _at(rules.ADDRESSES, seen, name, message, "Use one host.")


def _check_openapi(seen: HostExamination, capabilities: list[Capability]) -> Iterator[Diagnostic]:
    base = parse_web_address(_url(seen, "openapi"), insecure=True)
    if seen.openapi is None or isinstance(base, AddressFault):
        return
    operations, _ = openapi_capabilities(seen.openapi, base, insecure=True)
    origins = {each.origin for each in operations}
    plain = {str(origin) for origin in origins if origin.scheme == "http" and not is_loopback(origin.host)}
    if plain:
        message = f"operations are at {_some(plain)}"
        yield _at(rules.OVER_HTTP, seen, "openapi", message, "Use https addresses in servers.")
    known = {(each.method, _shape(each.target)): each for each in operations}
    own = [each for each in capabilities if each.origin.host == seen.address.origin.host]
    found = [(each, known.get((each.method, _shape(each.target)))) for each in own]
    missing = [f"{each.method} {each.target}" for each, operation in found if operation is None]
    if missing:
        message = f"{len(missing)} of {len(own)} capabilities are not OpenAPI operations: {_some(missing)}"
        advice = "Describe them in OpenAPI, or remove them from the discovery document."
        yield _at(rules.NOT_IN_OPENAPI, seen, "ai", message, advice)
    yield from _check_auth(seen, [(each, operation) for each, operation in found if operation is not None])


def _check_auth(seen: HostExamination, pairs: list[tuple[Capability, Capability]]) -> Iterator[Diagnostic]:
    """Report differences that break a call: a credential that was not mentioned, or another place for it."""
    for capability, operation in pairs:
        wanted = {place.kind for place in operation.credentials}
        given = {place.kind for place in capability.credentials}
        if not wanted or not given or "none" in wanted or "unknown" in wanted | given or wanted & given:
            continue
        said = "no credential" if given == {"none"} else f"a credential as {_some(given)}"
        message = f"{capability.id} needs {said} in this document but {_some(wanted)} in OpenAPI"
        yield _at(rules.AUTH, seen, "ai", message, "Use the same in both documents.")
        return


def _check_agis(seen: HostExamination, capabilities: list[Capability]) -> Iterator[Diagnostic]:
    if seen.agis is None:
        return
    known = {(entry.endpoint.method.upper(), _shape(entry.endpoint.path)) for entry in seen.agis.endpoints}

    def is_declared(method: str, path: str) -> bool:
        # The path may have a prefix that the contract does not name.
        return any((method, path[at:]) in known for at, character in enumerate(path) if character == "/")

    routes = [split_verb(each.target.partition("?")[0]) for each in capabilities]
    named = [(route[1].upper(), route[0] or "/") for route in routes if route is not None]
    missing = [f"{method} {path}" for method, path in named if not is_declared(method, _shape(path))]
    if missing:
        message = f"{len(missing)} of {len(named)} capabilities are not AGIS endpoints: {_some(missing)}"
        yield _at(rules.NOT_IN_AGIS, seen, "ai", message, "Declare them in the AGIS document, or remove them here.")


def _shape(target: str) -> str:
    """Return a path without its parameter names, which two documents may choose differently."""
    return _PLACEHOLDER.sub("{}", target.partition("?")[0])


def _some(values: Iterable[Any]) -> str:
    listed = [brief(str(value)) for value in sorted(values)]
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return f"{', '.join(listed[:_MOST])}{more}"


SLOWEST: Final = 3.0  # maximum response time in seconds (ai-discovery 2.2)
SHORTEST: Final = 3600  # minimum freshness of a document in seconds; the draft recommends a day

_KEEP: Final = "Send Cache-Control: public, max-age=86400."
_ADVICE: Final[dict[Rule, str]] = {
    rules.STATUS: "Return 200 with the document, or 404 if there is none.",
    rules.REDIRECTS: "Serve the document without redirects.",
    rules.DOWNGRADE: "Redirect to https, or serve the document without redirects.",
    rules.TOO_LARGE: "Keep it under 64,000 bytes, or split the service.",
    rules.ENCODING: "Send the document without an encoding unless the client asks for one.",
    rules.BROKEN: "Serve it completely, from memory.",
    rules.ROBOTS: "Write `Allow: /.well-known/` in robots.txt.",
    rules.CERTIFICATE: "Renew the certificate, for this host, with its whole chain.",
}
_FAULTS: Final[dict[FaultKind, Rule]] = {  # Rule for each kind of fetch fault; other faults are broken responses.
    "certificate": rules.CERTIFICATE,
    "redirect": rules.REDIRECTS,
    "downgrade": rules.DOWNGRADE,
    "size": rules.TOO_LARGE,
    "encoding": rules.ENCODING,
    "robots": rules.ROBOTS,
    "rate": rules.STATUS,
}
_OPTIONAL: Final = frozenset({"openapi", "agtp", "llms", "agis"})  # documents that a host may omit or restrict
_MAX_AGE: Final = re.compile(r"(?:^|,)\s*(?:s-maxage|max-age)\s*=\s*\"?(\d{1,10})", re.IGNORECASE)
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?utf-?8\"?\s*(?:;|$)", re.IGNORECASE)
_TYPES: Final[dict[Name, str]] = {
    "ai": "application/json; charset=utf-8",
    "summary": "application/json; charset=utf-8",
    "llms": "text/plain; charset=utf-8",
}


def check_answers(seen: HostExamination) -> Iterator[Diagnostic]:
    """Check how a host responds. The caller reports `unreachable`."""
    yield from _check_scheme(seen)
    for served in seen.documents.values():
        yield from _check_had(served)
        if served.fetched.ok:
            yield from _check_way(served.fetched)
        if served.is_there:
            yield from _check_content(served)
            yield from _check_keeping(served)
            yield from _check_head(served)
    yield from _check_presence(seen)
    yield from _check_alias(seen)
    if seen.absent is not None and seen.absent.status == 200:
        shown = brief(seen.absent.media_type) if seen.absent.media_type else "no type"
        message = f"a path that does not exist returned 200 with {shown}"
        yield _at_url(rules.SOFT_404, seen.absent.url, message, "Return 404.")
    if seen.unasked:
        message = f"{len(seen.unasked)} requests were skipped because the host was too slow: {seen.unasked[0]}"
        yield _at_url(rules.CUT, str(seen.address.origin), message, "Speed up the responses, and run the check again.")


def _at_url(rule: Rule, url: str, message: str, advice: str = "", severity: Severity | None = None) -> Diagnostic:
    return rule.found(message, Location(url), advice=advice or _ADVICE.get(rule, ""), severity=severity)


def _check_scheme(seen: HostExamination) -> Iterator[Diagnostic]:
    origin = seen.address.origin
    ai = seen.documents.get("ai")
    # A redirect from http to https is correct.
    if origin.scheme != "http" or (ai is not None and ai.fetched.ok and ai.fetched.final_url.startswith("https:")):
        return
    here = is_loopback(origin.host)
    message = "documents are served over plain http" + (", which is allowed only on this machine" if here else "")
    advice = "Serve them over https before you publish the service."
    yield _at_url(rules.PLAIN, str(origin), message, advice, "info" if here else None)


def _check_had(served: Served) -> Iterator[Diagnostic]:
    """Report why a document could not be fetched, unless it does not exist."""
    fetched, fault = served.fetched, served.fetched.fault
    if fault is None:
        if not served.is_there and served.name not in _OPTIONAL:
            yield _wrong_type(served)
        return
    optional = served.name in _OPTIONAL
    if fault.kind == "status":
        yield from _check_status(served)
    elif fault.kind == "type" or (fault.kind == "robots" and optional):
        # Another media type may be another document, and robots.txt may disallow optional ones.
        return
    elif fault.kind == "size" and optional:
        message = f"{fetched.what} was not checked: {fault.message}"
        yield _at_url(rules.CUT, fault.url, message, "Publish a smaller one.")
    else:
        # An unreachable host fails at its robots.txt; the finding names the requested document instead.
        where = fault.url if fetched.hops else fetched.url
        yield _at_url(_FAULTS.get(fault.kind, rules.BROKEN), where, f"{fetched.what}: {fault.message}")


def _check_status(served: Served) -> Iterator[Diagnostic]:
    fetched, status = served.fetched, served.fetched.status or 0
    if fetched.is_missing or (served.name in _OPTIONAL and status < 500):
        return
    if status in (401, 403, 407):
        message = f"{fetched.what} returned {status}: agents have no credentials before they have read it"
        yield _at_url(rules.CREDENTIALS, fetched.final_url, message, "Serve it without authentication.")
    else:
        yield _at_url(rules.STATUS, fetched.final_url, f"{fetched.what} returned {status}")


def _check_way(fetched: Fetched) -> Iterator[Diagnostic]:
    if fetched.first_seconds is not None and fetched.first_seconds > SLOWEST:
        message = f"{fetched.what} took {fetched.first_seconds:.1f} seconds"
        yield _at_url(rules.SLOW, fetched.url, message, "Answer within 3 seconds, from memory.")
    asked, got = (parse_web_address(url, insecure=True) for url in (fetched.url, fetched.final_url))
    if isinstance(asked, WebAddress) and isinstance(got, WebAddress) and asked.origin.host != got.origin.host:
        message = f"{fetched.what} is at another host: {brief(str(got))}"
        yield _at_url(rules.ELSEWHERE, fetched.url, message, "Serve it on this host.")


def _check_content(served: Served) -> Iterator[Diagnostic]:
    fetched, url = served.fetched, served.fetched.final_url
    content_type = fetched.headers.get("content-type", "")
    wanted = _TYPES.get(served.name)
    if served.name in ("ai", "summary") and not is_json(fetched.media_type):
        yield _wrong_type(served)
    elif wanted is not None and _CHARSET.search(content_type) is None:
        message = f"the Content-Type is {brief(content_type)}, without charset=utf-8"
        yield _at_url(rules.CHARSET, url, message, f"Send Content-Type: {wanted}.")
    encoding = fetched.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        yield _at_url(rules.ENCODING, url, f"the body is encoded as {brief(encoding)}, which was not requested")
    if fetched.body.startswith(BOM_UTF8):
        yield _at_url(rules.UTF8, url, "the document begins with a byte order mark", "Remove it.")
    elif served.text is None:
        yield _at_url(rules.UTF8, url, "the document is not UTF-8", "Send it as UTF-8.")


def _wrong_type(served: Served) -> Diagnostic:
    shown = served.fetched.headers.get("content-type", "")
    message = f"the Content-Type is {brief(shown)}" if shown else "the Content-Type is missing"
    wanted = _TYPES.get(served.name, "application/json")
    return _at_url(rules.MEDIA_TYPE, served.fetched.final_url, message, f"Send Content-Type: {wanted}.")


def _check_keeping(served: Served) -> Iterator[Diagnostic]:
    fetched, url = served.fetched, served.fetched.final_url
    control = fetched.headers.get("cache-control", "")
    words = {word.strip().partition("=")[0].lower() for word in control.split(",")}
    age = _MAX_AGE.search(control)
    if not control.strip() and "expires" not in fetched.headers:
        yield _at_url(rules.NOT_KEPT, url, "the Cache-Control is missing", _KEEP)
    elif forbidden := words & {"private", "no-store", "no-cache"}:
        yield _at_url(rules.NOT_KEPT, url, f"Cache-Control says {', '.join(sorted(forbidden))}", _KEEP)
    elif age is not None and int(age[1]) < SHORTEST:
        yield _at_url(rules.SHORT, url, f"the document may be cached for only {int(age[1])} seconds", _KEEP)
    if fetched.headers.keys().isdisjoint(("etag", "last-modified")):
        advice = "Send an ETag, and answer If-None-Match with 304."
        yield _at_url(rules.VALIDATOR, url, "the response has neither ETag nor Last-Modified", advice)
    if fetched.headers.get("access-control-allow-origin", "").strip() != "*":
        advice = "Send Access-Control-Allow-Origin: *."
        yield _at_url(rules.CORS, url, "agents in a browser cannot read the document", advice)


def _check_head(served: Served) -> Iterator[Diagnostic]:
    head, fetched = served.head, served.fetched
    if head is None:
        return
    advice = "Respond to HEAD as to GET, without the body."
    if head.status != 200:
        came = str(head.status) if head.status else f"no response ({head.fault.message if head.fault else ''})"
        yield _at_url(rules.HEAD, fetched.final_url, f"HEAD returned {came}, GET 200", advice)
        return
    length = head.headers.get("content-length")
    differing = [name for name in ("content-type", "etag") if head.headers.get(name) != fetched.headers.get(name)]
    if length is not None and "content-encoding" not in fetched.headers and length != str(len(fetched.body)):
        differing.append("content-length")
    if differing:
        message = f"HEAD returns a different {differing[0]} from GET: {brief(head.headers.get(differing[0], ''))}"
        yield _at_url(rules.HEAD, fetched.final_url, message, advice)


def _check_presence(seen: HostExamination) -> Iterator[Diagnostic]:
    origin = str(seen.address.origin)
    ai = seen.documents.get("ai")
    if not any(seen.there(name) for name in ("ai", "summary", "agis", "openapi")):
        # If the fetch failed, its cause is reported instead.
        if ai is None or ai.fetched.is_missing or ai.fetched.ok:
            yield _at_url(rules.NOTHING, origin, "the host has no document that describes a service", "Publish one.")
    elif ai is not None and ai.fetched.is_missing:
        message = f"{WELL_KNOWN_AI} returned {ai.fetched.status}"
        yield _at_url(rules.NO_DOCUMENT, f"{origin}{WELL_KNOWN_AI}", message, "Publish the discovery document.")


def _check_alias(seen: HostExamination) -> Iterator[Diagnostic]:
    alias, ai = seen.alias, seen.there("ai")
    if alias is None or ai is None or not alias.ok:
        return
    if is_json(alias.media_type) and alias.body != ai.fetched.body:
        message = f"the document here differs from {WELL_KNOWN_AI}"
        yield _at_url(rules.ALIAS, alias.url, message, "Serve the same bytes, or return 404.")


_KINDS: Final[Mapping[Name, Kind]] = {"ai": "ai", "agis": "agis"}  # documents that have lint rules for files


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCheck:
    address: WebAddress
    checked: dict[str, Checked | None] = field(default_factory=dict)
    """All existing documents by address, with lint findings for the kinds that have rules."""
    found: dict[str, list[Diagnostic]] = field(default_factory=dict)  # other findings, by address
    score: Score | None = None  # score of the service; None if the host did not respond

    @property
    def is_reached(self) -> bool:
        return self.score is not None


def live_address(text: str, *, insecure: bool = False) -> WebAddress | AddressFault:
    """Parse the address of a host to check. It has no path: discovery documents have fixed paths."""
    address = parse_web_address(text, insecure=insecure)
    if isinstance(address, WebAddress) and address.target not in PLACES:
        message = f"a live service is checked without a path such as {address.target[:100]!r}: use {address.origin}"
        return AddressFault("address", message)
    return address


async def check_live(address: WebAddress, examiner: Examiner, context: LintContext) -> LiveCheck:
    """Examine a host, and check everything that was fetched. Never raises for what a server does."""
    seen = await examiner.examine(address)
    if seen.unreachable is not None:
        fault = seen.unreachable
        origin = str(address.origin)
        finding = fault.rule.found(f"the host cannot be checked: {fault.message}", Location(origin))
        return LiveCheck(address=address, found={origin: [finding]})
    checked = _check_documents(seen, context)
    around = [*check_answers(seen), *check_agreement(seen)]
    written = [finding for each in checked.values() if each is not None for finding in each.findings]
    found: dict[str, list[Diagnostic]] = {}
    for finding in around:
        found.setdefault(finding.location.file if finding.location else str(address.origin), []).append(finding)
    return LiveCheck(address=address, checked=checked, found=found, score=score(seen, [*around, *written]))


def _check_documents(seen: HostExamination, context: LintContext) -> dict[str, Checked | None]:
    checked: dict[str, Checked | None] = {}
    for name, served in seen.documents.items():
        if served.is_there:
            kind, text, url = _KINDS.get(name), served.text, served.fetched.final_url
            known = kind is not None and text is not None
            checked[url] = check_text(text or "", url, context, kind) if known else checked.get(url)
    return checked
