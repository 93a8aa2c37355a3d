"""Construction of the console: its files, who is admitted, and what its JSON API answers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from bespeak.app.server.http_pages import PublishedFace, Publishing, list_faces, reach_of
from bespeak.app.server.linting import lint_served
from bespeak.app.server.settings import HttpAssembly, Settings
from bespeak.checks.evolution.comparison import compare, read_contract
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import tool_names
from bespeak.contract.http_route import http_route
from bespeak.contract.schema.view import sample
from bespeak.documents.projections.reference.calls import Reach, write_calls
from bespeak.errors import ContractError
from bespeak.faces import console
from bespeak.faces.console.application import PATH, Access, ConsoleApplication, Live, View, Visit
from bespeak.faces.console.exchanges import Asked, make_exchange
from bespeak.faces.console.panels import Work
from bespeak.faces.http.asgi import Application
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.http.face import Origins
from bespeak.faces.http.site import Page
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.route_table import RouteTable
from bespeak.terminal import panels

_FILES: Final = Path(console.__file__).with_name("static")
_BYTES_PER_TOKEN: Final = 4  # a usual mean of English and JSON
_MOST_FINDINGS: Final = 20
_MAP: Final = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


def mount_console(assembly: HttpAssembly, publishing: Publishing, settings: Settings) -> dict[str, Application]:
    """Return the console by its paths. A proxy may have removed the prefix of the public URL."""
    web, dispatcher = assembly.web, assembly.dispatcher
    server = dispatcher.server
    origins = Origins(url=web.url, loopback=assembly.loopback)  # pages of other origins never, whatever [http] cors
    access = Access(DispatchBackend(dispatcher, server, "console"), origins, settings.console_token)
    views = _Views(assembly, publishing, settings, access)
    app = ConsoleApplication(access, _files(), views.table(), Live(dispatcher))
    return {f"{prefix}{path}": app for prefix in dict.fromkeys(("", web.prefix)) for path in app.paths}


def _files() -> dict[str, Page]:
    return {
        str(path.relative_to(_FILES)): _page(path)
        for path in sorted(_FILES.rglob("*"))
        if path.is_file() and path.suffix in (".html", ".css", ".js", ".mjs", ".svg")
    }


def _page(path: Path) -> Page:
    content = path.read_bytes()
    kind = "text/javascript" if path.suffix in (".js", ".mjs") else mimetypes.types_map.get(path.suffix, "text/plain")
    policy = _policy(content) if path.suffix == ".html" else None
    return Page(lambda: content, f"{kind}; charset=utf-8", policy=policy, lifetime=0)


def _policy(page: bytes) -> str:
    """Write the Content-Security-Policy of the page: its own files only, and the one import map by its hash."""
    found = _MAP.search(page)
    hashed = "" if found is None else f" 'sha256-{base64.b64encode(hashlib.sha256(found[1]).digest()).decode()}'"
    return (
        f"default-src 'none'; script-src 'self'{hashed}; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class _Views:
    """What the JSON API answers about one server."""

    def __init__(self, assembly: HttpAssembly, publishing: Publishing, settings: Settings, access: Access) -> None:
        self._assembly = assembly
        self._server = assembly.dispatcher.server
        self._publishing = publishing
        self._settings = settings
        self._access = access
        self._work = Work(self._server, access)
        self._made: tuple[RouteTable, asyncio.Future[dict[str, tuple[PublishedFace, bytes]]]] | None = None
        self._linting: asyncio.Future[dict[str, Any]] | None = None

    def table(self) -> dict[str, View]:
        return {
            "session": View(self._session),
            "endpoints": View(self._endpoints),
            "endpoint": View(self._endpoint),
            "exchange": View(self._exchange, acts=True),
            "panel": View(self._work.show, change=self._work.act),
            "contract": View(self._contract),
            "face": View(self._face),
            "lint": View(self._lint),
            "catalog": View(self._catalog),
            "diff": View(self._diff, asks=True),
        }

    async def _faces(self) -> dict[str, tuple[PublishedFace, bytes]]:
        """Return every form of the contract with its content, made again only if the contract has changed."""
        routes, made = self._server.routes, self._made
        failed = made is not None and made[1].done() and made[1].exception() is not None
        if made is None or made[0] is not routes or failed:
            web, publishing, keeps_state = self._assembly.web, self._publishing, self._assembly.dispatcher.keeps_state

            def make() -> dict[str, tuple[PublishedFace, bytes]]:
                faces = list_faces(routes, web, publishing, keeps_state=keeps_state)
                return {face.name: (face, face.make()) for face in faces}

            # In a thread: those of thousands of endpoints take seconds.
            self._made = made = (routes, asyncio.ensure_future(asyncio.to_thread(make)))
        return await asyncio.shield(made[1])

    async def _contract(self, _: Visit) -> Mapping[str, Any]:
        return {
            "faces": [
                {
                    "name": face.name,
                    "path": face.path,
                    "media_type": face.media_type,
                    "bytes": len(content),
                    "tokens": -(-len(content) // _BYTES_PER_TOKEN),
                    "command": face.command,
                }
                for face, content in (await self._faces()).values()
            ],
            "tokens_are": f"estimated, as {_BYTES_PER_TOKEN} bytes each",
        }

    async def _face(self, visit: Visit) -> str | Refused:
        name = visit.given.get("name", "")
        found = (await self._faces()).get(name)
        message = f"The contract has no face {name[:40]!r}."
        return Refused(status.NOT_FOUND, "face-not-found", message) if found is None else found[1].decode()

    async def _lint(self, _: Visit) -> Mapping[str, Any]:
        if self._linting is None or self._linting.done():  # whoever asks meanwhile gets the same
            target, service = self._settings.target, self._server.registrar.service
            lint = asyncio.to_thread(lint_served, target, service, self._server.routes.catalog)
            self._linting = asyncio.ensure_future(lint)
        return {**await asyncio.shield(self._linting), "command": "bespeak lint TARGET --format json"}

    async def _catalog(self, _: Visit) -> Mapping[str, Any]:
        return {"blocks": show_catalog(self._server.routes), "command": "bespeak catalog list"}

    async def _diff(self, visit: Visit) -> Mapping[str, Any] | Fault | Refused:
        other = visit.given.get("other", visit.given.get("document"))
        if not isinstance(other, str) or not other.strip():
            return Fault("other must be the text of a manifest, an AGIS document or an endpoint file.", "other")
        try:
            report = await asyncio.to_thread(compare_with, self._server.routes, other)
        except ContractError as error:
            findings = [str(finding) for finding in error.findings[:_MOST_FINDINGS]]
            message = f"{error.message}: {findings[0] if findings else 'it cannot be read'}"
            return Refused(status.BAD_REQUEST, "not-a-contract", message, {"findings": findings})
        return {**report, "command": "bespeak diff OTHER TARGET --json"}

    async def _session(self, visit: Visit) -> Mapping[str, Any]:
        routes = self._server.routes
        identity = routes.service.identity
        reach = reach_of(routes, self._assembly.web, self._publishing)
        return {
            "service": {
                "name": identity.name or identity.server_id,
                "server_id": identity.server_id,
                "description": routes.service.description,
            },
            "version": version("bespeak"),
            "access": self._access.identity,
            "identity": "declared" if self._assembly.auth.is_open else "verified",
            "agtp": reach.agtp,
            "http": reach.url,
            "mcp": reach.mcp,
            "workers": self._settings.workers,
            "path": PATH,
            "can": self._access.rights(visit.caller),
            "panels": self._work.names(),
        }

    async def _endpoints(self, _: Visit) -> list[Any]:
        """Return a row for each endpoint that can be called, the operator's own first."""
        endpoints = self._server.routes.endpoints.values()
        return [
            (
                *(one.method, one.path, one.semantic.intent or one.description, one.semantic.impact),
                *(one.namespace or "", one.deprecated is not None, one.internal, one.is_basic, one.required_scopes),
            )
            for one in sorted(endpoints, key=lambda one: (one.is_basic, one.path, one.method))
        ]

    async def _endpoint(self, visit: Visit) -> Mapping[str, Any] | Refused:
        method, path = visit.given.get("method", ""), visit.given.get("path", "")
        routes = self._server.routes
        found = routes.endpoints.get((method, path))
        if found is None:
            message = f"There is no endpoint {method[:40]} {path[:120]}."
            return Refused(status.NOT_FOUND, "endpoint-not-found", message)
        return _describe(routes, found, reach_of(routes, self._assembly.web, self._publishing))

    async def _exchange(self, visit: Visit) -> Mapping[str, Any] | Fault | Refused:
        try:
            asked = msgspec.convert(visit.given, Asked)
        except msgspec.ValidationError as error:
            return Fault(f"The call is not valid: {error}.")
        return await make_exchange(self._assembly.dispatcher, asked, visit.connection)


_SHOWN: Final = ("method", "path", "description", "input_schema", "output_schema", "required_scopes", "internal")


def _describe(routes: RouteTable, endpoint: Endpoint, reach: Reach) -> dict[str, Any]:
    listed = [one for one in routes.endpoints.values() if one.is_listed]
    tool = dict(zip((one.key for one in listed), tool_names(listed), strict=True)).get(endpoint.key)
    route, shown = http_route(endpoint), sample(endpoint.input_schema)
    return {
        **{name: getattr(endpoint, name) for name in _SHOWN},
        "semantic": endpoint.semantic.to_json(),
        "errors": [{"name": one.name, "description": one.description} for one in endpoint.errors],
        "deprecated": None if endpoint.deprecated is None else endpoint.deprecated.to_json(),
        "confirmed": needs_confirmation(endpoint, routes.policies),
        "http": f"{route.preferred} {route.path}",
        "tool": tool,
        "sample": shown if isinstance(shown, dict) else {},
        "calls": write_calls(endpoint, reach, tool or ""),
    }


def show_catalog(routes: RouteTable) -> list[panels.Block]:
    """Return the verbs in use, with what is deprecated of the catalog and of the contract."""
    used: dict[str, list[Endpoint]] = {}
    for one in sorted(routes.endpoints.values(), key=lambda one: one.key):
        used.setdefault(one.method, []).append(one)
    verbs, gone = [], []
    for method, endpoints in used.items():
        verb = routes.catalog.verbs.get(method)
        own, is_old = sum(not one.is_basic for one in endpoints), routes.catalog.warns_of(method) is not None
        known = ("not in the catalog", None) if verb is None else (", ".join(verb.categories), verb.successor)
        told = (method, known[0], len(endpoints), own, known[1], "" if verb is None else verb.description)
        verbs.append(panels.row(method, *told, state="deprecated" if is_old else ""))
        for one in endpoints:
            if one.deprecated is not None:
                old = one.deprecated
                instead = " ".join(part for part in (old.successor_method, old.successor_path) if part)
                gone.append(panels.row(f"{one}", f"{one}", old.deprecated_in, old.removed_in, instead))
    identity, command = routes.catalog, "bespeak catalog list"
    return [
        panels.facts("Catalog", command, version=identity.version, verbs=len(identity.verbs), in_use=len(used)),
        panels.Table("Verbs in use", _VERBS, verbs[: panels.MOST_ROWS], command=command),
        panels.Table(
            "Deprecated endpoints", _GONE, gone[: panels.MOST_ROWS], empty="None.", command="bespeak discover TARGET"
        ),
    ]


_VERBS: Final = ("Verb", "Category", "Endpoints", "Own", "Successor", "Meaning")
_GONE: Final = ("Endpoint", "Since", "Until", "Instead")


def compare_with(routes: RouteTable, other: str) -> dict[str, Any]:
    """Compare another version of the contract, given as a document, with the one that is served.

    Raises ContractError with the findings of a document that cannot be read.
    """
    before, _ = read_contract(other, "other", tolerant=True)
    served, _ = read_contract(routes.publication.manifest_for(ANONYMOUS).body.decode(), "served")
    return compare("other", "served", before, served).to_json()
