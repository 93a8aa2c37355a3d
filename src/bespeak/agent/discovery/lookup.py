"""Lookup of a service by its address, one source after the other, and its result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final, Literal

from bespeak.agent.discovery import web_document
from bespeak.agent.discovery.agent_card import WELL_KNOWN_CARDS, AgentCard, read_card
from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.readers import (
    Capability,
    ai_capabilities,
    openapi_capabilities,
    read_agis_document,
    read_ai_document,
)
from bespeak.agent.discovery.web_document import AGIS, CARD, DISCOVERY, OPENAPI, SUMMARY, DocumentKind, Fetched, Robots
from bespeak.contract.http_route import split_verb
from bespeak.documents.agis.document import AgisDocument
from bespeak.documents.ai.document import MOST_CAPABILITIES, AiDocument
from bespeak.documents.manifest_json import ManifestDocument, parse_manifest
from bespeak.documents.openapi.description import Description
from bespeak.documents.rules import (
    ADDRESS_REFUSED,
    CAPABILITY_ELSEWHERE,
    CONTENT_USAGE,
    DOCUMENT_CUT,
    UNUSABLE_CAPABILITY,
    UNUSABLE_DOCUMENT,
)
from bespeak.protocol.address_guard import AddressFault, WebAddress, parse_web_address, resolve_address
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.source.tree import Location

Kind = Literal["agtp", "ai", "agis", "openapi", "a2a", "none"]
_HOPELESS: Final = frozenset(  # Faults that every document of the host would share.
    {"address", "scheme", "credentials", "plain", "private", "name", "connection", "certificate", "timeout", "rate"}
)
_MOST_LEFT_OUT: Final = 100
_LONGEST_NAME: Final = 200
_LONGEST_DESCRIPTION: Final = 300


@dataclass(slots=True)
class Discovered:
    """Result of a lookup."""

    address: WebAddress  # address that the user typed
    steps: list[Fetched] = field(default_factory=list)  # all fetched documents, in order
    findings: list[Diagnostic] = field(default_factory=list)
    capabilities: list[Capability] = field(default_factory=list)
    preferences: Mapping[str, str] = field(default_factory=dict)
    """Preferences about the use of the service's content, from headers and robots.txt."""
    found_at: WebAddress | None = None  # final address of the first document
    agtp: str | None = None  # AGTP address that the service names
    is_face: bool = False  # True if the host is an HTTP face of AGTP
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None  # members of /.well-known/agis.json
    agis: AgisDocument | None = None
    openapi: Description | None = None
    card: AgentCard | None = None  # card of an A2A agent; it is read only if nothing else is found

    @property
    def kind(self) -> Kind:
        """Kind of document the service is called by: `agtp` for AGTP's own contract over HTTP, `none` without any.

        An agent that has nothing but a card is `a2a`: its skills are called by messages.
        """
        documents: dict[Kind, object] = {"ai": self.ai, "agis": self.agis, "openapi": self.openapi, "a2a": self.card}
        found: Kind = next((kind for kind, document in documents.items() if document is not None), "none")
        return "agtp" if self.is_face else found

    @property
    def base(self) -> WebAddress:
        """Base of relative addresses in the document."""
        return self.found_at or self.address

    @property
    def name(self) -> str:
        return self._names()[0]

    @property
    def description(self) -> str:
        return self._names()[1]

    def capability(self, id: str) -> Capability | None:  # noqa: A002 - the draft's word
        return next((each for each in self.capabilities if each.id == id), None)

    def is_hopeless(self) -> bool:
        fault = self.steps[-1].fault if self.steps else None
        return fault is not None and fault.kind in _HOPELESS

    def start_from(self, fetched: Fetched) -> WebAddress:
        """Return the base of relative addresses in a document; the first document sets that of the service."""
        found = parse_web_address(fetched.final_url, insecure=True)
        assert isinstance(found, WebAddress)
        self.found_at = self.found_at or found
        return found

    def say(self, rule: Rule, message: str, url: str, advice: str = "", *, severity: Severity = "warning") -> None:
        self.findings.append(rule.found(message, Location(url), advice=advice, severity=severity))

    def leave_out(self, wrong: list[tuple[str, str]], url: str) -> None:
        """Add findings for capabilities that cannot be called: pointers with the reason."""
        self.findings += (UNUSABLE_CAPABILITY.found(text, Location(url), at) for at, text in wrong[:_MOST_LEFT_OUT])

    def finish(self, preferences: Mapping[str, str]) -> Discovered:
        """Add the preferences about the use of the service's content, and say what a user should know."""
        self.preferences = preferences
        if self.kind == "a2a" and self.card is not None:
            self.capabilities = self.card.capabilities()
        origin = str(self.address.origin)
        for signal, value in preferences.items():
            self.say(CONTENT_USAGE, f"{signal}: {brief(value)}", origin, severity="info")
        elsewhere = sorted({str(each.origin) for each in self.capabilities if each.origin != self.address.origin})
        if elsewhere and self.kind != "agtp":
            message = f"capabilities are at {', '.join(elsewhere[:5])}, which receive no credential"
            self.say(CAPABILITY_ELSEWHERE, message, origin, severity="info")
        return self

    def _names(self) -> tuple[str, str]:
        if self.ai is not None:
            return self.ai.name, self.ai.description
        if self.manifest is not None:
            return self.manifest.server.server_id, ""
        if self.agis is not None:
            return self.agis.service, self.agis.description
        if self.openapi is not None:
            # OpenAPI descriptions have paragraphs; this text is one line.
            return self.openapi.title[:_LONGEST_NAME], " ".join(self.openapi.description.split())[:_LONGEST_DESCRIPTION]
        if self.card is not None:
            return self.card.name[:_LONGEST_NAME], self.card.description[:_LONGEST_DESCRIPTION]
        service = (self.summary or {}).get("service")
        return (service[:_LONGEST_NAME] if isinstance(service, str) else ""), ""


_LINK: Final = re.compile(r"<([^<>]{1,2048})>([^<,]{0,500}(?:\"[^\"]{0,500}\"[^<,]{0,500}){0,8})")
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)


def service_descriptions(answers: Iterable[Fetched], *, insecure: bool = False) -> list[str]:
    """Collect the addresses that Link headers (RFC 8288) name as service descriptions (RFC 8631), each once."""
    found: dict[str, None] = {}
    for answer in answers:
        base = parse_web_address(answer.final_url, insecure=insecure)
        if isinstance(base, AddressFault):
            continue
        for target, parameters in _LINK.findall(answer.headers.get("link", "")[:8192]):
            rel = _REL.search(parameters)
            if rel is None or "service-desc" not in (rel[1] or rel[2]).lower().split():
                continue
            place = resolve_address(target, base, insecure=insecure)
            if not isinstance(place, AddressFault):
                found.setdefault(str(place))
    return list(found)[:3]


WELL_KNOWN_AI: Final = "/.well-known/ai"
ALIAS: Final = "/ai"  # alias of the discovery document; read only if the user names it (ai-discovery-01 4)
WELL_KNOWN_AGIS: Final = "/.well-known/agis.json"
OPENAPI_PLACES: Final = ("/openapi.json", "/.well-known/openapi.json", "/openapi.yaml")
_PLACES: Final = {  # Where kinds of documents are, in the order in which they are looked for.
    SUMMARY: (WELL_KNOWN_AGIS,),
    AGIS: ("/",),  # the root may reply with the document (AGIS 11)
    OPENAPI: OPENAPI_PLACES,
    CARD: WELL_KNOWN_CARDS,
}
_DOCUMENTS: Final = (".json", ".yaml", ".yml", ".agis")
_FACE: Final = "agtp-status"  # header that identifies an HTTP face of AGTP


Onward = tuple[str, DocumentKind] | None  # address and kind of a document that another one names


class Lookup:
    """Looks up services. Reads at most `most` capabilities of a document; None reads all."""

    def __init__(self, fetcher: Fetcher, *, most: int | None = MOST_CAPABILITIES) -> None:
        self._fetcher = fetcher
        self._most = most

    async def find(self, url: str) -> Discovered | AddressFault:
        """Look up the service at an address: a host, the mount path of a face, or one document."""
        address = parse_web_address(url, insecure=self._fetcher.insecure)
        if isinstance(address, AddressFault):
            return address
        # The address of a discovery document stands for the service that it describes.
        search = Discovered(address if address.path != WELL_KNOWN_AI else WebAddress(address.origin, "/"))
        if address.path.lower().endswith(_DOCUMENTS):
            await self._read_named(search)
        else:
            await self._look_around(search)
        return search.finish(await self._preferences(search))

    async def _look_around(self, search: Discovered) -> None:
        origin = search.address.origin
        await self._read(search, f"{origin}{WELL_KNOWN_AI}", DISCOVERY)
        if search.address.path == ALIAS and search.ai is None and not search.is_hopeless():
            await self._read(search, f"{origin}{ALIAS}", DISCOVERY)
        if not search.is_hopeless() and _may_be_face(search):
            await self._read_manifest(search)
        for kind, paths in _PLACES.items():
            linked = service_descriptions(search.steps, insecure=self._fetcher.insecure) if kind is OPENAPI else ()
            for url in (*linked, *(f"{origin}{path}" for path in paths)):
                if search.is_hopeless() or search.kind != "none":
                    return
                await self._read(search, url, kind)

    async def _read(self, search: Discovered, url: str, kind: DocumentKind) -> None:
        """Read a document, and then the one that it names."""
        takers = {
            DISCOVERY: self._take_ai,
            SUMMARY: self._take_summary,
            AGIS: self._take_agis,
            OPENAPI: self._take_openapi,
            CARD: self._take_card,
        }
        fetched = await self._get(search, url, kind)
        onward = takers[kind](search, fetched) if fetched.ok else None
        if onward is not None:
            await self._read(search, *onward)

    def _take_ai(self, search: Discovered, fetched: Fetched) -> None:
        document, found = read_ai_document(fetched.body, fetched.final_url, most=self._most)
        search.findings += found
        if document is None:
            search.say(UNUSABLE_DOCUMENT, "the discovery document cannot be used", fetched.final_url)
            return
        usable, wrong = ai_capabilities(document, search.start_from(fetched), insecure=self._fetcher.insecure)
        search.leave_out(wrong, fetched.final_url)
        if usable:
            search.ai = document
            search.capabilities += usable

    async def _read_manifest(self, search: Discovered) -> None:
        """Fetch the manifest of an HTTP face of AGTP: DISCOVER on its root."""
        place = f"{search.address.origin}{search.address.path.rstrip('/')}/:discover"
        # POST is sent only to hosts that have shown that they are an AGTP face; GET is harmless.
        if not _shows_face(search) or search.address.path != "/":
            looked = await self._get(search, place, web_document.FACE)
            if _FACE not in looked.headers:
                return
        fetched = await self._get(search, place, web_document.MANIFEST)
        if not fetched.ok:
            # A face that requires authentication for DISCOVER is still a face.
            search.is_face = _FACE in fetched.headers and fetched.status in (401, 403)
            return
        manifest, found = parse_manifest(fetched.body)
        if manifest is None or not manifest.agtp_version:
            search.findings += found if manifest is None else ()
            return
        search.is_face, search.manifest, search.found_at = True, manifest, search.address

    def _take_summary(self, search: Discovered, fetched: Fetched) -> Onward:
        """Take /.well-known/agis.json, which names the AGIS document (AGIS 11.1)."""
        root = json_table(fetched.body, fetched.final_url, tolerant=True)
        if isinstance(root, Diagnostic):
            search.findings.append(replace(root, severity="warning"))
            return None
        named, agtp = root.text("agis_document"), root.text("agtp")
        search.summary, search.agtp = root.data, agtp if agtp is not None and agtp.startswith("agtp://") else None
        search.findings += root.findings.found
        base = parse_web_address(fetched.final_url, insecure=self._fetcher.insecure)
        if named is None or isinstance(base, AddressFault):
            search.say(UNUSABLE_DOCUMENT, "agis.json does not name an AGIS document", fetched.final_url)
            return None
        if named.startswith("agtp://"):
            search.agtp = search.agtp or named
            return None
        place = resolve_address(named, base, insecure=self._fetcher.insecure)
        if isinstance(place, AddressFault):
            search.say(ADDRESS_REFUSED, f"agis.json names an invalid address: {place.message}", str(base))
            return None
        return str(place), AGIS

    def _take_agis(self, search: Discovered, fetched: Fetched) -> None:
        document, found = read_agis_document(fetched)
        search.findings += found
        if document is not None:
            search.agis, search.agtp = document, search.agtp or document.agtp or None
            search.start_from(fetched)

    def _take_openapi(self, search: Discovered, fetched: Fetched) -> None:
        from bespeak.documents.openapi.reader import read_description  # noqa: PLC0415 - most services have something shorter

        description, found = read_description(fetched.body, fetched.final_url, base_url=fetched.final_url)
        if description is None:
            search.findings += [replace(finding, severity="warning") for finding in found[:1]]
            return
        usable, wrong = openapi_capabilities(description, search.start_from(fetched), insecure=self._fetcher.insecure)
        search.leave_out(wrong, fetched.final_url)
        if not usable:
            search.say(UNUSABLE_DOCUMENT, "the OpenAPI description has no callable operations", fetched.final_url)
            return
        search.openapi = description
        search.capabilities += usable[: self._most]
        if self._most is not None and len(usable) > self._most:
            message = f"only the first {self._most} of {len(usable)} operations are used"
            search.say(DOCUMENT_CUT, message, fetched.final_url, "Use --all to read all of them.")

    def _take_card(self, search: Discovered, fetched: Fetched) -> Onward:
        """Take the card of an A2A agent, which may name a description with its schemas."""
        base = search.start_from(fetched)
        card, found = read_card(fetched.body, base, insecure=self._fetcher.insecure, most=self._most)
        search.findings += found
        if card is None:
            search.say(UNUSABLE_DOCUMENT, "the agent card has no name or no skills", fetched.final_url)
            return None
        search.card = card
        search.leave_out(list(card.left_out), fetched.final_url)
        place = None if card.openapi is None else resolve_address(card.openapi, base, insecure=self._fetcher.insecure)
        return (str(place), OPENAPI) if isinstance(place, WebAddress) else None

    async def _read_named(self, search: Discovered) -> None:
        """Read the document that an address names. A discovery document is valid only at its well-known path."""
        if search.address.path.endswith(WELL_KNOWN_CARDS):  # also below the path of one of several agents
            await self._read(search, str(search.address), CARD)
            return
        if search.address.path == WELL_KNOWN_AGIS:
            # The summary is that of the host, whatever query the address has.
            await self._read(search, f"{search.address.origin}{WELL_KNOWN_AGIS}", SUMMARY)
            return
        fetched = await self._get(search, str(search.address), OPENAPI)
        if not fetched.ok:
            return
        data = fetched.body[:4096]
        if b"aiendpoint" in data and b"openapi" not in data:
            message = f"a discovery document is valid only at {WELL_KNOWN_AI}"
            search.say(UNUSABLE_DOCUMENT, message, fetched.final_url, severity="error")
        elif b"agis" in data and b"openapi" not in data and b"swagger" not in data:
            self._take_agis(search, fetched)
        else:
            self._take_openapi(search, fetched)

    async def _get(self, search: Discovered, url: str, kind: DocumentKind) -> Fetched:
        fetched = await self._fetcher.get(url, kind)
        search.steps.append(fetched)
        fault = fetched.fault
        # A missing document is not a finding: few services have all of them. Nor is another one in its place: an HTML
        # page, or the refusal of an unknown path or method.
        is_other = fault is not None and fetched.what != DISCOVERY.what and fault.kind in ("type", "status")
        if fault is not None and not fetched.is_missing and not is_other:
            search.say(fault.rule, f"{kind.what}: {fault.message}", fault.url, severity="error")
        return fetched

    async def _preferences(self, search: Discovered) -> dict[str, str]:
        found: dict[str, str] = {}
        for step, name in product(search.steps, ("tdm-reservation", "tdm-policy", "content-usage")):
            if name in step.headers and step.ok:
                found.setdefault(name, step.headers[name][:200])
        if any(step.attempts or step.status for step in search.steps):
            robots = await self._fetcher.robots(search.address.origin)
            if isinstance(robots, Robots) and robots.preferences:
                found.setdefault("content-usage (robots.txt)", "; ".join(robots.preferences)[:200])
        return found


def _shows_face(search: Discovered) -> bool:
    return any(_FACE in step.headers for step in search.steps)


def _may_be_face(search: Discovered) -> bool:
    """Return True if the host looks like an HTTP face of AGTP, or the address has a path that may be one."""
    if search.address.path != "/" or _shows_face(search):
        return True
    return any(split_verb(each.target) is not None for each in search.capabilities)
