"""Credentials of an upstream: the security schemes this server uses, and the variables that hold the secrets.

A caller's identity is never forwarded (AGTP-API 12.3): the upstream only knows this server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bespeak.documents.adoption.facade import Variable
from bespeak.documents.adoption.guess import Guess
from bespeak.documents.adoption.naming import words
from bespeak.documents.openapi.description import Description, Operation, SecurityScheme
from bespeak.protocol.exchange.headers import is_header_name

_LONGEST_PREFIX: Final = 24
_SUFFIXES: Final = {"bearer": "TOKEN", "basic": "BASIC", "apiKey": "API_KEY"}


@dataclass(slots=True)
class Credentials:
    """Credentials to send to the upstream, and their variables."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    guesses: list[Guess] = field(default_factory=list)

    @property
    def is_sent(self) -> bool:
        """True if the upstream gets a credential."""
        return bool(self.headers or self.query or self.cookies)

    @property
    def parameters(self) -> frozenset[tuple[str, str]]:
        """Places and names of the credentials: a described parameter that matches one is not an input."""
        return frozenset(
            (place, name)
            for place, names in (("header", self.headers), ("query", self.query), ("cookie", self.cookies))
            for name in names
        )


class CredentialChoice:
    """Chooses credentials for the operations of one description; each scheme has one variable."""

    def __init__(self, description: Description) -> None:
        self._schemes = description.schemes
        title = "_".join(words(description.title)).upper()[:_LONGEST_PREFIX].strip("_")
        # The title is the description's choice: one called GitHub must not get an existing GITHUB_TOKEN.
        self._prefix = f"UPSTREAM_{title}".rstrip("_")
        kinds = [_kind(scheme) for scheme in self._schemes.values()]
        self._alone = {kind for kind in kinds if kinds.count(kind) == 1}

    def choose(self, operation: Operation) -> Credentials:
        """Choose the first alternative that is supported; none if the upstream admits anonymous calls."""
        alternatives = operation.security
        if not alternatives or any(not alternative for alternative in alternatives):
            return self._anonymous(alternatives)
        for alternative in alternatives:
            if all(self._is_possible(name) for name in alternative):
                return self._meet(tuple(alternative), len(alternatives))
        named = ", ".join(sorted({name for alternative in alternatives for name in alternative}))
        kinds = {_kind(self._schemes[name]) for one in alternatives for name in one if name in self._schemes}
        why = f"bespeak cannot send {', '.join(sorted(filter(None, kinds))) or named}"
        guess = Guess(
            at="/handler/url",
            text="no credential is sent",
            why=why,
            confidence=0.2,
            otherwise=f"a credential for {named}, without which the upstream refuses every call",
            risk="high",
        )
        return Credentials(guesses=[guess])

    def _anonymous(self, alternatives: tuple[Mapping[str, tuple[str, ...]], ...]) -> Credentials:
        if len(alternatives) < 2:
            return Credentials()
        named = ", ".join(sorted({name for alternative in alternatives for name in alternative}))
        why = "the upstream needs none, so agents reach only public data"
        guess = Guess(at="/handler/url", text="no credential is sent", why=why, confidence=0.7, otherwise=named)
        return Credentials(guesses=[guess])

    def _is_possible(self, name: str) -> bool:
        scheme = self._schemes.get(name)
        if scheme is None:
            return False
        kind = _kind(scheme)
        if kind == "apiKey":
            fits = is_header_name(scheme.parameter) if scheme.place != "query" else bool(scheme.parameter)
            return scheme.place in ("header", "query", "cookie") and fits
        return kind in _SUFFIXES

    def _meet(self, names: tuple[str, ...], alternatives: int) -> Credentials:
        found = Credentials()
        variables: list[Variable] = []
        for name in names:
            scheme = self._schemes[name]
            variable = self._variable(scheme)
            variables.append(variable)
            value = f"${{{variable.name}}}"
            if _kind(scheme) == "apiKey":
                {"header": found.headers, "query": found.query, "cookie": found.cookies}[scheme.place][
                    scheme.parameter
                ] = value
            else:
                found.headers["Authorization"] = f"{'Basic' if _kind(scheme) == 'basic' else 'Bearer'} {value}"
        found.variables = tuple(variables)
        if alternatives > 1:
            text, why = f"the credential is {' and '.join(names)}", f"the first of {alternatives} alternatives"
            found.guesses.append(Guess(at="/handler/url", text=text, why=why, confidence=0.8))
        return found

    def _variable(self, scheme: SecurityScheme) -> Variable:
        kind = _kind(scheme)
        own = "" if kind in self._alone else "_".join(words(scheme.name)).upper()[:_LONGEST_PREFIX]
        name = "_".join(filter(None, (self._prefix, own, _SUFFIXES[kind])))
        what = {
            "bearer": f"the access token ({scheme.kind}) of this server, without the word Bearer",
            "basic": "base64 of user:password",
            "apiKey": f"the key for the {scheme.place} {scheme.parameter}",
        }[kind]
        return Variable(name, what)


def _kind(scheme: SecurityScheme) -> str:
    """Return the supported form of a scheme: `bearer`, `basic` or `apiKey`; its own name if it is not supported."""
    if scheme.kind in ("oauth2", "openIdConnect"):
        return "bearer"
    if scheme.kind == "http":
        return scheme.scheme.lower()
    return scheme.kind
