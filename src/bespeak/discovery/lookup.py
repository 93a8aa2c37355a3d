"""From an address to what is offered there: one source after the other, until one can be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bespeak.contract.http_route import split_verb
from bespeak.diagnostics.brief import brief
from bespeak.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.discovery.ai_reading import ai_capabilities, read_ai_document
from bespeak.discovery.capability import Capability
from bespeak.discovery.discovered import Discovered, Kind
from bespeak.discovery.document_kind import AGIS, DISCOVERY, FACE, MANIFEST, OPENAPI, SUMMARY, DocumentKind
from bespeak.discovery.fetched import Fetched, FetchFault
from bespeak.discovery.fetcher import Fetcher
from bespeak.discovery.links import service_descriptions
from bespeak.discovery.openapi_reading import openapi_capabilities
from bespeak.discovery.robots import Robots
from bespeak.discovery.web_address import AddressFault, WebAddress, parse_address, resolve_address
from bespeak.documents.agis_document import AgisDocument, read_agis
from bespeak.documents.ai_json import MOST_CAPABILITIES, AiDocument
from bespeak.documents.json_text import json_table
from bespeak.documents.manifest_json import ManifestDocument, parse_manifest
from bespeak.documents.notation_text import parse_notation
from bespeak.openapi.description import Description
from bespeak.source.span import Location
from bespeak.source.tree import Tree

WELL_KNOWN_AI: Final = "/.well-known/ai"
WELL_KNOWN_AGIS: Final = "/.well-known/agis.json"
OPENAPI_PLACES: Final = ("/openapi.json", "/.well-known/openapi.json", "/openapi.yaml")
_DOCUMENTS: Final = (".json", ".yaml", ".yml", ".agis")
_FACE: Final = "agtp-status"
"""The header by which an HTTP face of AGTP is known."""
_HOPELESS: Final = frozenset(
    {"address", "scheme", "credentials", "plain", "private", "name", "connection", "certificate", "timeout", "rate"}
)
"""Faults that every other document of the same host would meet, too."""
_MOST_WRONG: Final = 20
"""Findings about one document: the first say enough of why it is not used."""
_SIGNALS: Final = ("tdm-reservation", "tdm-policy", "content-usage")


@dataclass(slots=True)
class _Search:
    """What has been found so far."""

    address: WebAddress
    steps: list[Fetched] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    base: WebAddress | None = None
    capabilities: list[Capability] = field(default_factory=list)
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None
    agis: AgisDocument | None = None
    openapi: Description | None = None
    agtp: str | None = None
    is_face: bool = False

    @property
    def callable(self) -> bool:
        """Whether something was found that calls can be made by."""
        return bool(self.is_face or self.ai or self.agis or self.openapi)

    def shows_face(self) -> bool:
        """Whether an answer came from an HTTP face of AGTP."""
        return any(_FACE in step.headers for step in self.steps)

    def is_hopeless(self) -> bool:
        """Whether the host itself cannot be asked."""
        fault = self.steps[-1].fault if self.steps else None
        return fault is not None and fault.kind in _HOPELESS


class Lookup:
    """Looks services up. `most` capabilities are taken of a document; None takes all."""

    def __init__(self, fetcher: Fetcher, *, most: int | None = MOST_CAPABILITIES, everything: bool = False) -> None:
        self._fetcher = fetcher
        self._most = most
        self._everything = everything
        """Ask for every document, also where one was found that calls can be made by."""

    async def find(self, url: str) -> Discovered | AddressFault:
        """What is offered at an address: a host, a path that a face is mounted at, or one document."""
        address = parse_address(url, insecure=self._fetcher.insecure)
        if isinstance(address, AddressFault):
            return address
        search = _Search(address)
        if address.path.lower().endswith(_DOCUMENTS):
            await self._read_named(search)
        else:
            await self._look_around(search)
        return await self._result(search)

    async def _look_around(self, search: _Search) -> None:
        await self._read_ai(search)
        if search.is_hopeless():
            return
        if _may_be_face(search):
            await self._read_manifest(search)
        for look in (self._read_summary, self._read_root, self._read_openapi):
            if search.is_hopeless() or (search.callable and not self._everything):
                return
            await look(search)

    async def _read_ai(self, search: _Search) -> None:
        fetched = await self._get(search, f"{search.address.origin}{WELL_KNOWN_AI}", DISCOVERY)
        if not fetched.ok:
            return
        document, found = read_ai_document(fetched.body, fetched.final_url, most=self._most)
        search.findings += found
        if document is None:
            self._say(search, "W105", "the discovery document cannot be used", fetched.final_url)
            return
        search.ai = document
        base = self._base(search, fetched)
        usable, wrong = ai_capabilities(document, base, insecure=self._fetcher.insecure)
        self._leave_out(search, wrong, fetched.final_url)
        if usable:
            search.capabilities += usable
        else:
            search.ai = None

    async def _read_manifest(self, search: _Search) -> None:
        """The contract of an HTTP face of AGTP: DISCOVER on its root."""
        place = f"{search.address.origin}{search.address.path.rstrip('/')}/:discover"
        # Nothing is posted to who has not shown that it speaks AGTP: only looking does no harm there.
        if not search.shows_face() or search.address.path != "/":
            looked = await self._get(search, place, FACE)
            if _FACE not in looked.headers:
                return
        fetched = await self._get(search, place, MANIFEST)
        if not fetched.ok:
            # Who must prove who they are before they may discover is a face nevertheless.
            search.is_face = _FACE in fetched.headers and fetched.status in (401, 403)
            return
        manifest, found = parse_manifest(fetched.body)
        if manifest is None or not manifest.agtp_version:
            search.findings += found if manifest is None else ()
            return
        search.is_face, search.manifest = True, manifest
        search.base = search.address

    async def _read_summary(self, search: _Search) -> None:
        """/.well-known/agis.json, and the document it names (AGIS 11.1)."""
        fetched = await self._get(search, f"{search.address.origin}{WELL_KNOWN_AGIS}", SUMMARY)
        if not fetched.ok:
            return
        root = json_table(fetched.body.removeprefix(b"\xef\xbb\xbf"), fetched.final_url, tolerant=True)
        if isinstance(root, Diagnostic):
            search.findings.append(replace(root, severity="warning"))
            return
        named = root.text("agis_document")
        search.summary = root.data
        agtp = root.text("agtp")
        search.agtp = agtp if agtp is not None and agtp.startswith("agtp://") else None
        search.findings += root.findings.found
        base = parse_address(fetched.final_url, insecure=self._fetcher.insecure)
        if named is None or isinstance(base, AddressFault):
            self._say(search, "W105", "agis.json names no AGIS document", fetched.final_url)
        elif named.startswith("agtp://"):
            search.agtp = search.agtp or named
        else:
            place = resolve_address(named, base, insecure=self._fetcher.insecure)
            if isinstance(place, AddressFault):
                self._say(search, "W102", f"agis.json names a document nobody asks for: {place.message}", str(base))
            else:
                await self._read_agis(search, str(place))

    async def _read_root(self, search: _Search) -> None:
        """The AGIS document as the answer of the root (AGIS 11)."""
        if search.agis is None:
            await self._read_agis(search, f"{search.address.origin}/")

    async def _read_agis(self, search: _Search, url: str) -> None:
        fetched = await self._get(search, url, AGIS)
        if fetched.ok:
            self._take_agis(search, fetched)

    def _take_agis(self, search: _Search, fetched: Fetched) -> None:
        tree = _tree(fetched)
        if isinstance(tree, Diagnostic):
            search.findings.append(replace(tree, severity="warning"))
            return
        if not isinstance(tree.data, dict) or "agis" not in tree.data:
            self._say(search, "W105", "what is answered is no AGIS document", fetched.final_url)
            return
        document, found = read_agis(tree)
        if document is None or not document.endpoints:
            search.findings += found
            self._say(search, "W105", "the AGIS document cannot be used", fetched.final_url)
            return
        wrong = _against_agis(fetched)
        if wrong:
            search.findings += wrong[:_MOST_WRONG]
            message = "the AGIS document does not keep the rules of AGIS, and nothing of it is used"
            self._say(search, "W105", message, fetched.final_url)
            return
        search.agis, search.agtp = document, search.agtp or document.agtp or None
        self._base(search, fetched)

    async def _read_openapi(self, search: _Search) -> None:
        linked = service_descriptions(search.steps, insecure=self._fetcher.insecure)
        for url in (*linked, *(f"{search.address.origin}{path}" for path in OPENAPI_PLACES)):
            fetched = await self._get(search, url, OPENAPI)
            if fetched.ok and self._take_openapi(search, fetched):
                return
            if search.is_hopeless():
                return

    def _take_openapi(self, search: _Search, fetched: Fetched) -> bool:
        from bespeak.openapi.reader import read_description  # noqa: PLC0415 - most services have something shorter

        description, found = read_description(fetched.body, fetched.final_url, base_url=fetched.final_url)
        if description is None:
            search.findings += [replace(finding, severity="warning") for finding in found[:1]]
            return False
        base = self._base(search, fetched)
        usable, wrong = openapi_capabilities(description, base, insecure=self._fetcher.insecure)
        self._leave_out(search, wrong, fetched.final_url)
        if not usable:
            self._say(search, "W105", "the OpenAPI description has nothing that can be called", fetched.final_url)
            return False
        search.openapi = description
        if not (search.ai or search.is_face):
            search.capabilities += usable[: self._most]
            if self._most is not None and len(usable) > self._most:
                message = f"of {len(usable)} operations the first {self._most} are taken"
                self._say(search, "W107", message, fetched.final_url, help="Ask for all of them (--all).")
        return True

    async def _read_named(self, search: _Search) -> None:
        """The one document an address names. A discovery document counts at its own place only."""
        if search.address.path == WELL_KNOWN_AGIS:
            await self._read_summary(search)
            return
        fetched = await self._get(search, str(search.address), OPENAPI)
        if not fetched.ok:
            return
        data = fetched.body[:4096]
        if b"aiendpoint" in data and b"openapi" not in data:
            message = f"a discovery document counts at {WELL_KNOWN_AI} only"
            self._say(search, "W105", message, fetched.final_url, severity="error")
        elif b"agis" in data and b"openapi" not in data and b"swagger" not in data:
            self._take_agis(search, fetched)
        else:
            self._take_openapi(search, fetched)

    async def _get(self, search: _Search, url: str, kind: DocumentKind) -> Fetched:
        fetched = await self._fetcher.get(url, kind)
        search.steps.append(fetched)
        fault = fetched.fault
        # That a document is not there is no finding: few services have all of them.
        if fault is not None and not fetched.is_missing and not _is_other(fetched):
            message = f"{kind.what}: {fault.message}"
            self._say(search, fault.rule, message, fault.url, severity="error")
        return fetched

    def _base(self, search: _Search, fetched: Fetched) -> WebAddress:
        found = parse_address(fetched.final_url, insecure=True)
        assert isinstance(found, WebAddress)
        search.base = search.base or found
        return found

    def _leave_out(self, search: _Search, wrong: list[tuple[str, str]], url: str) -> None:
        for pointer, message in wrong[:100]:
            search.findings.append(Diagnostic("W106", "warning", message, Location(url), pointer))

    def _say(
        self,
        search: _Search,
        rule: str,
        message: str,
        url: str,
        *,
        help: str = "",  # noqa: A002 - as in Diagnostic
        severity: Severity = "warning",
    ) -> None:
        search.findings.append(Diagnostic(rule, severity, message, Location(url), help=help))

    async def _result(self, search: _Search) -> Discovered:
        kind: Kind = (
            "agtp"
            if search.is_face
            else "ai"
            if search.ai
            else "agis"
            if search.agis
            else "openapi"
            if search.openapi
            else "none"
        )
        preferences = await self._preferences(search)
        self._note(search, kind, preferences)
        name, description = _names(search, kind)
        return Discovered(
            kind=kind,
            address=search.address,
            base=search.base or search.address,
            name=name,
            description=description,
            capabilities=tuple(search.capabilities),
            findings=tuple(search.findings),
            steps=tuple(search.steps),
            preferences=preferences,
            agtp=search.agtp,
            manifest=search.manifest,
            ai=search.ai,
            summary=search.summary,
            agis=search.agis,
            openapi=search.openapi,
        )

    def _note(self, search: _Search, kind: Kind, preferences: Mapping[str, str]) -> None:
        for name, value in preferences.items():
            self._say(search, "W108", f"{name}: {brief(value)}", str(search.address.origin), severity="info")
        elsewhere = sorted({str(each.origin) for each in search.capabilities if each.origin != search.address.origin})
        if elsewhere and kind != "agtp":
            message = f"capabilities are at {', '.join(elsewhere[:5])}, where no credential is sent"
            self._say(search, "W109", message, str(search.address.origin), severity="info")

    async def _preferences(self, search: _Search) -> dict[str, str]:
        found: dict[str, str] = {}
        for step in search.steps:
            for name in _SIGNALS:
                if name in step.headers and step.ok:
                    found.setdefault(name, step.headers[name][:200])
        if any(step.attempts or step.status for step in search.steps):
            robots = await self._fetcher.robots(search.address.origin)
            if isinstance(robots, Robots) and robots.preferences:
                found.setdefault("content-usage (robots.txt)", "; ".join(robots.preferences)[:200])
        return found


def _may_be_face(search: _Search) -> bool:
    """Whether the host looks like an HTTP face of AGTP, or the user names the path of one."""
    if search.address.path != "/" or search.shows_face():
        return True
    return any(split_verb(each.target) is not None for each in search.capabilities)


def _is_other(fetched: Fetched) -> bool:
    """Whether the answer is about something else: a page for people, or a refusal of what nobody offers."""
    fault: FetchFault | None = fetched.fault
    return fault is not None and fetched.what != DISCOVERY.what and fault.kind in ("type", "status")


def _tree(fetched: Fetched) -> Tree | Diagnostic:
    try:
        text = fetched.body.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return Diagnostic("D101", "error", "the document is not UTF-8", Location(fetched.final_url))
    return parse_notation(text, fetched.final_url)


def _against_agis(fetched: Fetched) -> list[Diagnostic]:
    """What makes an AGIS document one that is not to be used (AGIS 11, 13)."""
    from bespeak.discovery.producer_check import check_producer  # noqa: PLC0415 - most services have something shorter

    plain = replace(fetched, what=AGIS.what, body=fetched.body.removeprefix(b"\xef\xbb\xbf"))
    return [finding for finding in check_producer(plain) if finding.severity == "error"]


def _names(search: _Search, kind: Kind) -> tuple[str, str]:
    if search.ai is not None:
        return search.ai.name, search.ai.description
    if kind == "agtp" and search.manifest is not None:
        return search.manifest.server.server_id, ""
    if search.agis is not None:
        return search.agis.service, search.agis.description
    if search.openapi is not None:
        return search.openapi.title[:200], search.openapi.description[:300]
    summary = search.summary or {}
    service = summary.get("service")
    return (service[:200] if isinstance(service, str) else ""), ""
