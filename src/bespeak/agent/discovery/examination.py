"""Collects all documents of a live service for a check, valid or not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.lookup import ALIAS, OPENAPI_PLACES, WELL_KNOWN_AGIS, WELL_KNOWN_AI
from bespeak.agent.discovery.readers import agis_tree, read_ai_document
from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, OPENAPI, SUMMARY, DocumentKind, Fetched, FetchFault
from bespeak.documents.agis.document import AgisDocument, read_agis
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.openapi.description import Description
from bespeak.protocol.address_guard import AddressFault, WebAddress, parse_web_address, resolve_address
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import json_table
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
        budget: float = BUDGET,
        longest: float = LONGEST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher
        self._budget = budget
        self._longest = longest
        self._clock = clock
        self._until = 0.0

    async def examine(self, address: WebAddress) -> HostExamination:
        """Fetch everything there is to check of a host. Never raises for what a server does."""
        seen = HostExamination(address=address)
        self._until = self._clock() + self._budget
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
