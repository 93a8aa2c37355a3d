"""From a service to a running server: register endpoints, build the dispatcher, run the background work."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bespeak.app.server import collector_paused
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import open_catalog
from bespeak.contract.data_set import data_sets
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.extensions import BUNDLED, FLOOR_HANDLERS, HOOKS, Lazy
from bespeak.contract.schema.file_schema import has_files
from bespeak.contract.service import Service, Vocabulary
from bespeak.contract.standard.communicate import MESSAGES
from bespeak.contract.standard.methods import STANDARD, choose_methods
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.documents.rules import NO_EFFECT
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.background import DueLoop
from bespeak.runtime.confirmations import Confirmations
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Auditor, Metrics, RunningTrail, Subscriber, access_log
from bespeak.runtime.extension import BuiltIn, Extension, Opening, check_names, close_all, read_settings, run_all
from bespeak.runtime.idempotency import Idempotency
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.methods.builtin import builtin_endpoints
from bespeak.runtime.rate import RateExchange
from bespeak.runtime.registration import DataEndpoint, Registrar
from bespeak.runtime.responder import Responder
from bespeak.runtime.server import Server
from bespeak.runtime.sessions import Pausing, Sessions
from bespeak.runtime.settlement import Settlement
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import Sweeper
from bespeak.text.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey


@dataclass(frozen=True, slots=True)
class Assembled:
    registrar: Registrar
    findings: list[Diagnostic]
    updated: str  # time of the last change of the service; the same in every process that serves it
    signer: Signer | None
    # Variables from which credentials are read.
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    extensions: tuple[Extension, ...] = ()  # extensions of the server; those that need a store do nothing without one

    def build_dispatcher(
        self,
        store: Store | None = None,
        document: ServerDocument | None = None,
        auditor: Auditor | None = None,
        subscribers: tuple[Subscriber, ...] = (),
    ) -> Dispatcher:
        """Build a server with its state in `store`, and its dispatcher; `subscribers` are told of every exchange."""
        document = document or ServerDocument()
        service = self.registrar.service
        server = Server(
            self.registrar,
            updated=self.updated,
            issued=first_written(service),
            signer=self.signer,
            store=store,
            auth=document.auth,
            sessions=document.sessions,
            cases=document.cases,
            extensions=self.extensions,
            hooks=HOOKS,
        )
        server.audited = server.principals.audited = auditor is not None
        responder = Responder()
        settlement = None
        if store is not None:
            sessions = Sessions(document.sessions)
            sessions.watch(store)
            chosen = document.idempotency
            settlement = Settlement(
                store,
                responder,
                Idempotency(lease=chosen.lease, retention=chosen.retention, require=chosen.require),
                sessions=sessions,
                pausing=Pausing(server.tasks),
                confirmations=Confirmations(document.cases),
                auditor=auditor,
            )
        dispatcher = Dispatcher(server, responder, settlement, (*access_log(), *subscribers))
        opening = Opening(server, dispatcher, document, self.environment, self.signer)
        settings = read_settings(server.extensions, document.extensions)
        for extension in server.extensions:
            opening.settings = settings.get(extension.name)
            if extension.open is not None:
                extension.open(opening)
            elif opening.settings is not None:
                opening.provide(extension.name, opening.settings)
        return dispatcher


def choose_extensions(service: Service, *, stored: bool, tables: Iterable[str] = ()) -> tuple[Extension, ...]:
    """Load the extensions that a server needs, and add those of the author."""
    given = {
        "methods": not STANDARD.keys().isdisjoint(service.methods),
        "store": stored,
        "delivery": "delivery" in tables,
        "people": "people" in tables,
        "language_model": "language_model" in tables,
        "negotiation": stored and service.policies.synthesis_enabled,
        "semantic": service.semantic is not None,
        "data": service.data_manifest is not None,
        "files": any(has_files(one.input_schema) or has_files(one.output_schema) for one in service.endpoints)
        or any(has_files({"properties": STANDARD[name].parameters}) for name in service.methods if name in STANDARD),
    }
    bundled = (known.value.load() for known in BUNDLED if any(given[need] for need in known.needed_by))
    chosen: tuple[Extension, ...] = (*bundled, *service.extensions)
    check_names(chosen)
    return chosen


class _AnyVariable(dict[str, str]):
    """An environment in which every variable is set, to bind upstreams that are never called."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "unset"

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


def now() -> str:
    return write_instant(time.time())


def first_written(service: Service) -> str | None:
    """Return the time of the oldest endpoint file, for a manifest that no store remembers (AGTP-API 8.3); or None."""
    times = []
    for file in {endpoint.location.file for endpoint in service.endpoints if endpoint.location is not None}:
        with contextlib.suppress(OSError, ValueError):
            times.append(Path(file).stat().st_mtime)
    return write_instant(min(times)) if times else None


@collector_paused()
def assemble(
    service: Service,
    *,
    base: Path | None = None,
    updated: str | None = None,
    signing_key: OKPKey | None = None,
    verifies: bool = False,
    stored: bool = True,
    tables: Iterable[str] = (),
    describes: bool = False,
) -> Assembled:
    """Register the endpoints of a service; omit and report those that are not valid. A missing catalog is fatal.

    `verifies` says whether callers have to authenticate, `stored` whether the server will have a store, `tables`
    which tables of extensions its configuration has. `describes` is True if no endpoint will be called, so that no
    credential of an upstream is needed.
    """
    server_id = service.identity.server_id
    if not server_id.strip() or not is_header_value(server_id):
        advice = "give it to App(...), or write it into [server] of bespeak.toml"
        raise ConfigError(f"server_id is sent in a header of every response, so it cannot be {server_id!r}: {advice}")
    catalog, findings = open_catalog(service.catalog, base)
    if catalog is None:
        raise ConfigError("\n".join(str(finding) for finding in findings))
    service, unkept = _disable_unsupported(service, verifies=verifies, stored=stored)
    service = _with_own_methods(_with_joined_methods(service), catalog)
    extensions = choose_extensions(service, stored=stored, tables=tables)
    builtins = list_builtins(service, extensions, stored=stored, tables=tables)
    opened: list[DataEndpoint] = []
    for extension in extensions:
        if extension.sources is not None:
            sources, found = extension.sources(service, base or Path())
            opened += sources
            unkept += found
    environment = _AnyVariable() if describes else os.environ
    wraps = [extension.wraps for extension in extensions if extension.wraps is not None]
    registrar = Registrar(service, catalog, builtins, environment, opened, verifies=verifies, wraps=wraps)
    signer = None if signing_key is None else Signer(signing_key)
    findings = [*findings, *unkept, *registrar.findings]
    return Assembled(registrar, findings, updated or now(), signer, environment, extensions)


def _with_joined_methods(service: Service) -> Service:
    """Offer the standard methods that functions of the service take part in."""
    joined = {method for participant in service.participants for method in participant.methods}
    return replace(service, methods=choose_methods((*service.methods, *joined))) if joined else service


def _with_own_methods(service: Service, catalog: Catalog) -> Service:
    """Admit the methods of the author's extensions: those that the catalog lacks are custom methods."""
    names = tuple(method.name for extension in service.extensions for method, _ in extension.own_methods)
    if not names:
        return service
    admitted = service.policies.methods
    custom = (*admitted.custom, *(name for name in names if name not in catalog.names and name not in admitted.custom))
    policies = replace(service.policies, methods=replace(admitted, custom=custom))
    return replace(service, methods=(*service.methods, *names), policies=policies)


def list_builtins(
    service: Service, extensions: Sequence[Extension] | None = None, *, stored: bool, tables: Iterable[str] = ()
) -> list[Endpoint]:
    """List the built-in endpoints of a service, with those of extensions; by default of those that it needs."""
    service = _with_joined_methods(service)
    messages = Lazy("bespeak.extensions.messages.methods_inbox", "messages")
    return builtin_endpoints(
        service,
        stored=stored,
        tables=tables,
        extensions=choose_extensions(service, stored=stored) if extensions is None else extensions,
        floor_handlers=FLOOR_HANDLERS,
        added=(BuiltIn(MESSAGES, "/messages", messages),),
    )


def _disable_unsupported(service: Service, *, verifies: bool, stored: bool) -> tuple[Service, list[Diagnostic]]:
    """Disable announced features that this server does not support, with a warning for each."""
    policies = service.policies
    unkept = {}  # what is announced, and its effect
    if policies.synthesis_enabled and not stored:
        policies = replace(policies, synthesis_enabled=False)
        message = "policies.synthesis_enabled is true, but this server has no store for what agents propose"
        unkept[message] = "The manifest says false and PROPOSE answers 463 synthesis-disabled."
    if policies.wildcards_accepted and service.wildcard_handler is None:
        policies = replace(policies, wildcards_accepted=False)
        message = "policies.wildcards_accepted is true, but nothing answers ad-hoc calls"
        unkept[message] = "The manifest says false; set a wildcard_handler to change that."
    vocabulary = service.vocabulary
    # AGIS 8.2(e): a negotiable service has a data manifest.
    lacking = "policies.synthesis_enabled is false" if not policies.synthesis_enabled else ""
    lacking = lacking or ("there is no data manifest" if service.data_manifest is None else "")
    if vocabulary is None and not lacking and any(data_sets(service.data_manifest)):
        vocabulary = Vocabulary(negotiable=True)
    if vocabulary is not None and vocabulary.negotiable and lacking:
        vocabulary = replace(vocabulary, negotiable=False)
        message = f"vocabulary.negotiable is true, but {lacking}"
        unkept[message] = "The AGIS document at the root does not say negotiable."
    if service.agents and service.agent_disclosure == "authenticated" and not verifies:
        message = "agents are disclosed to authenticated callers, but open mode authenticates none"
        unkept[message] = "No caller sees hosted_agents; choose [auth] modes to change that."
    findings = [NO_EFFECT.found(message, advice=effect) for message, effect in unkept.items()]
    return replace(service, policies=policies, vocabulary=vocabulary), findings


class Keeper:
    """Builds a server with a store before the loop runs; `start` activates the store."""

    def __init__(
        self,
        assembled: Assembled,
        store: Store,
        document: ServerDocument,
        keys: tuple[OKPKey, ...] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """Open the state; `keys` are the signing key, followed by those it replaced."""
        self._store = store
        self.metrics = metrics  # numbers about the exchanges; None if nobody asks for them
        service = assembled.registrar.service
        audited = document.audit.recording(lasting=store.lasting) != "off"
        self._trail = RunningTrail(document.audit, service.identity.server_id, store, keys) if audited else None
        auditor = self._trail.auditor if self._trail is not None else None
        self.dispatcher = assembled.build_dispatcher(store, document, auditor, () if metrics is None else (metrics,))
        self._server = self.dispatcher.server
        self._server.trail = self._trail
        self._sweeper = Sweeper(store)
        kinds = self._server.kinds if service.methods or service.extensions else {}
        due = {kind: how.due(self._server) for kind, how in kinds.items() if how.due is not None}
        self._due = DueLoop(store, due, lease=document.idempotency.lease)
        rates = self._server.rates
        # A process with a store of its own counts on its own too.
        self._exchange = RateExchange(rates, store) if rates is not None and not store.sole else None

    async def start(self) -> None:
        await self._store.start()
        try:
            await self.dispatcher.start()
        except BaseException:
            await self._server.close()
            await self._store.close()
            raise
        if self._trail is not None:
            await self._trail.start()
        if self._exchange is not None:
            self._exchange.start()
        self._sweeper.start()
        await run_all(self._server.runs)
        self._due.start()

    async def stop(self) -> None:
        steps = [self._due.stop, *reversed(self._server.stops), self._sweeper.stop]
        steps += [] if self._exchange is None else [self._exchange.close]
        steps += [self._server.close, self.dispatcher.finish]
        steps += [] if self._trail is None else [self._trail.stop]
        await close_all((*steps, self._store.close))
