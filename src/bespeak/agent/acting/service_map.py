"""The service map (AGIS 11): endpoints of one or several services, validated, named, and matched to an instruction."""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.agent.client.service import origins_elsewhere
from bespeak.checks.lint import registration
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import bundled_versions, load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.matching import EndpointIndex, Evidence
from bespeak.contract.matching.calibration import FLOOR
from bespeak.contract.matching.needs import LONGEST
from bespeak.contract.matching.vectors import Backend
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.adoption.sanitizer import instruction_in, plain_text
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import BespeakError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.table import as_mapping, as_texts
from bespeak.text.source.pointer import pointer

if TYPE_CHECKING:
    from bespeak.agent.client.service import ServiceClient

MOST_ENDPOINTS: Final = 20_000  # endpoints of one map
_MOST_FINDINGS: Final = 100
_LONGEST_TEXT: Final = 500  # AGIS 13: characters of an intent or an outcome that are read
_WORDS: Final = re.compile(r"[a-z0-9-]+")
_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Place:
    """One endpoint of one service, as its contract was when the map was read."""

    namespace: str  # name of the service among those of the map
    endpoint: Endpoint
    client: ServiceClient = field(repr=False, compare=False)
    doubt: str = ""  # why the texts of the contract are not trusted; empty if they are
    aliases: tuple[str, ...] = ()
    """What the rules of an agent may write before the verb: nothing that the service says of itself."""
    elsewhere: str = ""  # origin of its calls, if it is not the service that the user named

    @property
    def name(self) -> str:
        """Name of the verb at run time, as in `logistics.DISPATCH` (AGIS 8.2)."""
        return f"{self.namespace}.{self.endpoint.method}"

    @property
    def fields(self) -> Mapping[str, Any]:
        """Schemas of the fields of the input."""
        return as_mapping(self.endpoint.input_schema.get("properties"))

    @property
    def takes_words(self) -> bool:
        """True if its input is the instruction itself: skills of A2A agents are called by messages."""
        return self.client.discovered is not None and self.client.discovered.kind == "a2a"

    @property
    def needed(self) -> tuple[str, ...]:
        """Fields that every call has: those that are required, then those of the path."""
        template = parse_template(self.endpoint.path)
        in_path = () if isinstance(template, Fault) else template.parameters
        return tuple(dict.fromkeys((*as_texts(self.endpoint.input_schema.get("required")), *in_path)))

    @property
    def fingerprint(self) -> str:
        """Hash of what the contract promises; a call is decided again if it has changed."""
        one = self.endpoint
        parts: list[Any] = [*one.key, one.description, one.semantic.to_json(), one.input_schema, one.output_schema]
        parts += [one.required_scopes, one.confirm, None if one.deprecated is None else one.deprecated.to_json()]
        return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]

    @property
    def address(self) -> str:
        """Where a call goes."""
        return self.elsewhere or str(self.client.locator)

    def __str__(self) -> str:
        return f"{self.name} {self.endpoint.path}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that may be meant, and how sure that is."""

    place: Place
    score: float
    confidence: float  # calibrated, 0 to 1
    parts: Evidence = field(repr=False)


@dataclass(frozen=True, slots=True)
class DiscoveryFailure:
    """A service that is not in the map: it was not reached, or its document does not conform (AGIS 11)."""

    source: str
    reason: str
    findings: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        return self.reason if self.reason.startswith(self.source) else f"{self.source}: {self.reason}"


@dataclass(frozen=True, slots=True)
class MappedService:
    """A service of the map."""

    namespace: str
    aliases: tuple[str, ...]
    client: ServiceClient = field(repr=False)
    manifest: ManifestDocument = field(repr=False)
    places: tuple[Place, ...] = field(repr=False)
    catalog_version: str | None
    """Version of the catalog that both sides use (AGTP-API 4.6); None for a service without one."""
    notes: tuple[str, ...] = ()
    """What a user should know of the contract: endpoints that are left out, and texts that are not trusted."""
    findings: tuple[Diagnostic, ...] = ()
    """Errors of the endpoints that are left out."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Methods and paths of the endpoints that are left out."""


class ServiceMap:
    """Services side by side. It does not change; `renewed` returns another one."""

    def __init__(
        self,
        services: Iterable[MappedService],
        failures: Iterable[DiscoveryFailure] = (),
        backend: Backend | None = None,
    ) -> None:
        """Put services side by side. `backend` compares meanings, by default the best that is installed."""
        self.services = tuple(services)
        self._backend = backend
        self.failures = tuple(failures)
        """Services that could not be read, with the reason."""
        self.places = tuple(place for service in self.services for place in service.places)[:MOST_ENDPOINTS]

    @classmethod
    async def read(
        cls,
        clients: Mapping[str, ServiceClient] | Iterable[tuple[str, ServiceClient]],
        failures: Iterable[DiscoveryFailure] = (),
        backend: Backend | None = None,
        sources: Mapping[int, str] | None = None,
    ) -> ServiceMap:
        """Read and validate the contracts of open clients. A service with an empty name is named by its contract.

        `sources` are the addresses and files as the user wrote them, by the number of the client.
        """
        named = list(clients.items() if isinstance(clients, Mapping) else clients)
        services: list[MappedService] = []
        failures = list(failures)
        alone = ("",) if len(named) + len(failures) == 1 else ()
        for number, (namespace, client) in enumerate(named):
            written = {str(client.locator), (sources or {}).get(number, str(client.locator))}
            aliases = (*alone, *(f"{one} " for one in sorted(written)), *([f"{namespace}."] if namespace else []))
            read = await read_service(client, namespace, {one.namespace for one in services}, aliases)
            if isinstance(read, MappedService):
                services.append(read)
            else:
                failures.append(read)
        return cls(services, failures, backend)

    @property
    def vocabulary(self) -> Mapping[str, tuple[Place, ...]]:
        """Verbs of all services with their places (AGIS 11 (c))."""
        found: dict[str, list[Place]] = {}
        for place in self.places:
            found.setdefault(place.endpoint.method, []).append(place)
        return {verb: tuple(places) for verb, places in found.items()}

    @cached_property
    def _index(self) -> EndpointIndex:
        return EndpointIndex([_as_data(place) for place in self.places], backend=self._backend)

    def match(self, instruction: str, limit: int = 5, *, floor: float = FLOOR) -> list[Candidate]:
        """Return the endpoints that may serve an instruction, best first, with calibrated confidence.

        The list is empty if the confidence of the best one is below `floor`: no endpoint serves the instruction.
        An instruction that names one of several services, as in "dispatch it with logistics", means that one.
        """
        if not self.places:
            return []
        said = set(_WORDS.findall(instruction[:LONGEST].lower()))
        named = [one.namespace for one in self.services if one.namespace in said and len(self.services) > 1]
        found = self._index.match(
            instruction,
            limit,
            floor=floor,
            admits=(lambda place: self.places[place].namespace in named) if len(named) == 1 else None,
        )
        return [Candidate(self.places[one.place], one.score, one.confidence, one.parts) for one in found]

    def find(self, method: str, path: str = "", namespace: str = "") -> list[Place]:
        """Return the places with a verb, `DISPATCH` or `logistics.DISPATCH`, and perhaps a path."""
        qualifier, _, verb = method.rpartition(".")
        wanted = namespace or qualifier
        return [
            place
            for place in self.places
            if place.endpoint.method == verb.upper()
            and (not path or place.endpoint.path == path)
            and (not wanted or place.namespace == wanted)
        ]

    def endpoints_beside(self, place: Place) -> list[Endpoint]:
        """Return the endpoints of the service that a place belongs to."""
        return [one.endpoint for one in self.places if one.namespace == place.namespace]

    def label(self, place: Place) -> str:
        """Return the name of a verb, with its namespace if there are several services."""
        return place.name if len(self.services) > 1 else place.endpoint.method

    async def renewed(self, asked: str | None = None) -> ServiceMap:
        """Return this map, or a new one if a service has changed its contract.

        A service is read again if it has announced another version (AGTP-API-Version). The one with the namespace
        `asked` is asked in any case, by its ETag; raises BespeakError if it does not answer.
        """
        services: list[MappedService] = []
        failures = list(self.failures)
        for service in self.services:
            is_asked = service.namespace == asked
            try:
                manifest = await service.client.discover(refresh=is_asked)
            except BespeakError:
                if is_asked:
                    raise
                manifest = service.manifest  # it may answer again until it is called
            if manifest is service.manifest or manifest.raw == service.manifest.raw:
                services.append(service)
            else:
                read = await read_service(service.client, service.namespace, aliases=service.aliases)
                failures = [one for one in failures if one.source != str(service.client.locator)]
                if isinstance(read, DiscoveryFailure):  # until its contract changes again
                    failures.append(read)
                    read = replace(service, manifest=manifest, places=(), notes=(), findings=read.findings)
                services.append(read)
        same = len(services) == len(self.services) and all(map(operator.is_, services, self.services))
        return self if same else ServiceMap(services, failures, self._backend)


async def read_service(
    client: ServiceClient, namespace: str = "", taken: Iterable[str] = (), aliases: tuple[str, ...] = ()
) -> MappedService | DiscoveryFailure:
    """Read the contract of a service and validate it before anything in it is used (AGIS 11 (b), 13).

    An AGIS document conforms as a whole or not at all (AGIS 9.2), which its reader has checked. In a manifest each
    endpoint is a contract of its own (AGTP-API 6.1): one that a server must not register is left out, with findings.
    """
    source, discovered = str(client.locator), client.discovered
    try:
        manifest = await client.discover()
    except BespeakError as error:
        return DiscoveryFailure(source, str(error))
    catalog = None
    if discovered is None or discovered.kind == "agtp":
        if client.catalog_version is None:
            # AGTP-API 4.6: without a common version the agent gives up the service.
            offered = ", ".join(manifest.catalog_versions_supported or (manifest.catalog_version,)) or "of no version"
            own = ", ".join(bundled_versions())
            return DiscoveryFailure(source, f"it supports the catalog {offered}, and this agent {own}")
        catalog = load_bundled(client.catalog_version)
    # What a manifest says of its version does not decide whether its verbs are checked.
    endpoints = manifest.endpoints if catalog is None else manifest.own_endpoints
    wrong = _validate(endpoints, manifest.policies, catalog)
    findings = tuple(found for errors in wrong.values() for found in errors)[:_MOST_FINDINGS]
    if wrong and len(wrong) == len(endpoints):
        more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
        return DiscoveryFailure(source, f"its contract does not conform: {findings[0]}{more}", findings)
    name = _free(namespace or _namespace(client, manifest), taken)
    origins = origins_elsewhere(client)
    places = tuple(
        Place(name, one, client, _doubt(one), aliases, origins.get(one.semantic.mcp_tool_name or "", ""))
        for number, one in enumerate(endpoints)
        if number not in wrong
    )
    said = ((endpoints[number], errors[0].message) for number, errors in wrong.items())
    notes = [f"{one} is left out: {message.removeprefix(f'{one}: ')}" for one, message in said]
    notes += [f"{place.endpoint}: {place.doubt}" for place in places if place.doubt]
    version = None if catalog is None else catalog.version
    left_out = tuple(endpoints[number].key for number in wrong)
    return MappedService(name, aliases, client, manifest, places, version, tuple(notes), findings, left_out)


def _validate(
    endpoints: Sequence[Endpoint], policies: Policies, catalog: Catalog | None
) -> dict[int, tuple[Diagnostic, ...]]:
    """Return the errors of each endpoint that does not conform, by its number.

    Services that are only described on the web have no catalog.
    """
    found: dict[int, tuple[Diagnostic, ...]] = {}
    collisions: dict[int, list[Diagnostic]] = {}
    for one, finding in () if catalog is None else registration.check_service(endpoints):
        collisions.setdefault(id(one), []).append(finding)
    for number, endpoint in enumerate(endpoints):
        checked: Iterable[Diagnostic] = _check_schemas(endpoint)
        if catalog is not None:
            contract = registration.check_contract(endpoint, catalog, policies)
            checked = (*contract, *collisions.get(id(endpoint), ()))
        errors = tuple(
            replace(one, pointer=f"/endpoints/{number}{one.pointer.removeprefix('/endpoint')}")
            for one in checked
            if one.severity == "error"
        )
        if errors:
            found[number] = errors
    return found


def _check_schemas(endpoint: Endpoint) -> Iterator[Diagnostic]:
    for name in ("input_schema", "output_schema"):
        if isinstance(fault := compile_schema(getattr(endpoint, name)), Fault):
            from bespeak.checks.lint.rules.schema import INVALID  # noqa: PLC0415 - only for contracts with such a fault

            yield INVALID.at(endpoint, pointer((name,)), f"the schema cannot be used: {fault.message}")


def _namespace(client: ServiceClient, manifest: ManifestDocument) -> str:
    """Return the namespace that a service gives itself, else the first label of its name."""
    agis = client.discovered.agis if client.discovered is not None else None
    vocabulary = agis.vocabulary if agis is not None else None
    if vocabulary is not None and vocabulary.namespace:
        return vocabulary.namespace
    host = manifest.server.server_id or client.locator.host
    return host if re.fullmatch(r"[\d.:]+", host) else host.partition(".")[0]


def _free(name: str, taken: Iterable[str]) -> str:
    """Return a name in lower case that no other service of the map has."""
    plain = _NAME.sub("-", name.lower()[:60]).strip("-") or "service"
    used, number, free = set(taken), 1, plain
    while free in used:
        number += 1
        free = f"{plain}-{number}"
    return free


def _texts(endpoint: Endpoint) -> Iterator[str]:
    semantic = endpoint.semantic
    yield from (semantic.intent, semantic.outcome)  # a description may address its reader
    for hints in semantic.parameter_hints.values():
        yield from (hint for hint in (hints if isinstance(hints, list) else [hints]) if isinstance(hint, str))


def _doubt(endpoint: Endpoint) -> str:
    """Return what is wrong with the texts of a contract: they are data, and do not instruct (AGIS 13)."""
    for text in _texts(endpoint):
        if fault := plain_text(text, _LONGEST_TEXT).fault:
            return f"its contract holds {fault}: {brief(text[:120])}"
    spoken = instruction_in(endpoint.input_schema)
    return f"its input holds {spoken}" if spoken else ""


def _as_data(place: Place) -> Endpoint:
    """Return the endpoint as it is indexed: texts are cut, and end before an instruction to the reader."""
    one = place.endpoint
    longest = max((len(text) for text in (one.semantic.intent, one.semantic.outcome, one.description)), default=0)
    if not place.doubt and longest <= _LONGEST_TEXT:
        return one
    said: dict[str, Any] = {
        name: plain_text(getattr(one.semantic, name), _LONGEST_TEXT).text for name in ("intent", "outcome")
    }
    hints = {} if place.doubt else one.semantic.parameter_hints
    described = plain_text(one.description, _LONGEST_TEXT).text
    return replace(one, description=described, semantic=replace(one.semantic, **said, parameter_hints=hints))
