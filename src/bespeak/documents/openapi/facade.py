"""A description as endpoints in front of its upstream: one for each operation, with every guess on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_METHODS, ExternalService
from bespeak.contract.semantic import Semantic
from bespeak.documents.openapi.claims import Claim, claim_places
from bespeak.documents.openapi.credentials import CredentialChoice, Credentials, Variable
from bespeak.documents.openapi.description import Description, Operation
from bespeak.documents.openapi.error_names import shape_errors
from bespeak.documents.openapi.guess import Guess, LeftOut
from bespeak.documents.openapi.impact_guess import guess_impact
from bespeak.documents.openapi.input_shape import InputShape, shape_input
from bespeak.documents.openapi.naming import words
from bespeak.documents.openapi.output_shape import Known, shape_output
from bespeak.documents.openapi.schema_fit import SchemaFitter
from bespeak.documents.openapi.sentences import write_sentences
from bespeak.protocol.exchange.headers import is_header_value

_TIMEOUT: Final = 30.0
_LONGEST_DOMAIN: Final = 24
_SAFE: Final = "/{}:@!$&'()*+,;=-._~%"


@dataclass(frozen=True, slots=True)
class Facade:
    """One endpoint and the operation behind it."""

    operation: Operation
    endpoint: Endpoint
    guesses: tuple[Guess, ...]
    variables: tuple[Variable, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Why the path is not the described one."""


def make_facades(description: Description, catalog: Catalog) -> tuple[list[Facade], list[LeftOut]]:
    """The endpoints of a description, in its order, and the operations that cannot be called."""
    maker = _Maker(description, catalog)
    usable: list[Operation] = []
    left_out: list[LeftOut] = []
    for operation in description.operations:
        reason = _unusable(operation)
        if reason:
            left_out.append(LeftOut(f"{operation.method} {operation.path}", reason))
        else:
            usable.append(operation)
    facades: list[Facade] = []
    for operation, claim in zip(usable, claim_places(usable, catalog), strict=True):
        facade = maker.make(operation, claim)
        if isinstance(facade, str):
            left_out.append(LeftOut(f"{operation.method} {operation.path}", facade))
        else:
            facades.append(facade)
    return facades, left_out


def upstream_hosts(operations: Iterable[Operation]) -> list[str]:
    """The hosts that are called, each once."""
    return list(dict.fromkeys(filter(None, (urlsplit(operation.base).hostname for operation in operations))))


def _unusable(operation: Operation) -> str:
    if operation.method not in UPSTREAM_METHODS:
        return f"no upstream is called with {operation.method}"
    parts = urlsplit(operation.base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "no server is known for it; give one with --server"
    if "{" in parts.netloc:
        return "the name of its server has a variable in it; give one with --server"
    return ""


class _Maker:
    """Makes the endpoints of one description."""

    def __init__(self, description: Description, catalog: Catalog) -> None:
        self._catalog = catalog
        self._fitter = SchemaFitter()
        self._outputs: Known = {}
        self._credentials = CredentialChoice(description)
        version = description.version.strip()
        self._version = version if version and ";" not in version and is_header_value(version) else "1"
        self._domain = "-".join(words(description.title))[:_LONGEST_DOMAIN].strip("-") or "upstream"
        self._readable = {(one.base, one.path) for one in description.operations if one.method == "GET"}

    def make(self, operation: Operation, claim: Claim) -> Facade | str:
        """The endpoint of an operation, or why there is none."""
        credentials = self._credentials.choose(operation)
        given = shape_input(operation, claim.path, self._fitter, credentials=credentials.parameters)
        if isinstance(given, str):
            return given
        returned = shape_output(operation, self._fitter, self._outputs)
        if isinstance(returned, str):
            return returned
        verb, path = claim.verb.verb, claim.path.path
        can_be_read = (operation.base, operation.path) in self._readable
        impact = guess_impact(operation, claim.verb, self._catalog, can_be_read=can_be_read)
        said = write_sentences(operation, verb, path, impact=impact.impact)
        errors = shape_errors(operation, has_credential=credentials.is_sent)
        scopes, scope_guess = self._scopes(impact.impact, credentials)
        url, url_guess = _url(operation, claim, given)
        fixed, fixed_guess = _fixed(given.headers)
        handler = ExternalService(
            url=url,
            method=operation.method,
            headers={**fixed, **credentials.headers},
            query_credentials=credentials.query,
            cookie_credentials=credentials.cookies,
            input_transform=given.transform,
            error_map=errors.error_map,
            timeout_seconds=_TIMEOUT,
            query=tuple(given.query),
            lists=given.lists,
            header_fields=given.header_fields,
            cookie_fields=given.cookie_fields,
            body=given.body if given.body_field is None else None,
            body_field=given.body_field,
            files=given.files,
            answer=returned.answer,
            output_field=returned.output_field,
        )
        endpoint = Endpoint(
            method=verb,
            path=path,
            description=said.description,
            semantic=Semantic(
                intent=said.intent,
                actor="agent",
                outcome=said.outcome,
                capability=impact.capability,
                confidence=impact.confidence,
                impact=impact.impact,
                is_idempotent=impact.is_idempotent,
            ),
            input_schema=given.schema,
            output_schema=returned.schema,
            errors=errors.errors,
            handler=handler,
            required_scopes=scopes,
            deprecated=Deprecation(deprecated_in=self._version) if operation.deprecated else None,
        )
        guesses = (
            *_place_guesses(claim, operation),
            *impact.guesses,
            *said.guesses,
            *credentials.guesses,
            *url_guess,
            *fixed_guess,
            *scope_guess,
            *given.guesses,
            *returned.guesses,
            *errors.guesses,
            *self._deprecation(operation),
        )
        return Facade(operation, endpoint, guesses, credentials.variables, claim.path.reasons)

    def _scopes(self, impact: str, credentials: Credentials) -> tuple[tuple[str, ...], list[Guess]]:
        """Nothing that changes something, or that is behind a credential of the operator, is open to everybody."""
        if impact == "informational" and not credentials.is_sent:
            return (), []
        scope = f"{self._domain}:{'read' if impact == 'informational' else 'write'}"
        why = "it changes something" if impact != "informational" else "it uses the operator's own credential"
        guess = Guess(
            at="/required_scopes",
            text=f"scope {scope}",
            why=why,
            confidence=0.5,
            otherwise="a narrower scope",
            risk="medium" if impact != "informational" else "low",
        )
        return (scope,), [guess]

    def _deprecation(self, operation: Operation) -> Sequence[Guess]:
        if not operation.deprecated:
            return ()
        text, why = f"deprecated in {self._version}", "the description does not say since when"
        return (Guess(at="/deprecated", text=text, why=why, confidence=0.5),)


def _place_guesses(claim: Claim, operation: Operation) -> Iterable[Guess]:
    changing = operation.method not in ("GET", "HEAD")
    doubtful = claim.verb.confidence < 0.7
    others = " or ".join(claim.verb.others[:3])
    moved = f", as {claim.moved} is taken" if claim.moved else ""
    yield Guess(
        at="/method",
        text=claim.verb.verb,
        why=f"{claim.verb.why}{moved}",
        confidence=claim.verb.confidence,
        otherwise=others,
        risk="high" if changing and doubtful else "medium" if doubtful else "low",
    )
    # Parameters under names of ours are no guess: the URL of the handler says whose they are.
    if claim.moved or claim.path.path != claim.path.url_path(operation.path.partition("#")[0]):
        why = "; ".join((*claim.path.reasons[:4], *([f"{claim.moved} is taken"] if claim.moved else ())))
        yield Guess(at="/path", text=f"{claim.path.path} for {operation.path[:120]}", why=why, confidence=0.8)


def _fixed(headers: Mapping[str, str]) -> tuple[dict[str, str], list[Guess]]:
    """The headers that are always sent. Nobody but us writes `${...}` into one: it reads a variable of this server."""
    kept = {name: value for name, value in headers.items() if "${" not in value and is_header_value(value)}
    return kept, [
        Guess(
            at="/handler/url",
            text=f"without the header {name}",
            why="its described value is none that can be sent",
            confidence=0.3,
            otherwise="a value of your own",
            risk="high",
        )
        for name in headers
        if name not in kept
    ]


def _url(operation: Operation, claim: Claim, given: InputShape) -> tuple[str, Iterable[Guess]]:
    """The URL of the upstream. The draft demands https, whatever the description says."""
    base = operation.base.rstrip("/")
    guesses: list[Guess] = []
    if base.lower().startswith("http://"):
        base = "https://" + base[len("http://") :]
        guesses.append(
            Guess(
                at="/handler/url",
                text=f"{base} instead of plain http",
                why="AGTP-API 12.3 takes no plain http",
                confidence=0.3,
                otherwise="another address of the upstream with TLS",
                risk="high",
            )
        )
    described, _, own = operation.path.partition("#")[0].partition("?")
    path = quote(claim.path.url_path(described), safe=_SAFE)
    pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in given.own_query]
    query = "&".join(filter(None, (quote(claim.path.url_path(own), safe=_SAFE), *pairs)))
    return f"{base}{path if path.startswith('/') or not path else '/' + path}{'?' + query if query else ''}", guesses
