"""A callable of an upstream (OpenAPI operation, MCP tool, A2A skill), its endpoint, and the guesses to confirm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.contract.limits import Rate
from bespeak.text.language.names import main_class, singular, words
from bespeak.text.language.sentence import listed

Risk = Literal["high", "medium", "low"]
RISKS: Final[tuple[Risk, ...]] = ("high", "medium", "low")  # risks, highest first
UNSURE: Final = 0.7  # confidence below which a guess is doubtful
UNREVIEWED: Final = "Published as unreviewed."  # first words of the comment before `reviewed = false`
MARKER: Final = re.compile(r"#[ \t]*+review \(([0-9.]++)\): ?(.*+)")  # comment of a guess: confidence and text


@dataclass(frozen=True, slots=True)
class Guess:
    """A value that an importer wrote without support in the description, for a person to confirm."""

    at: str  # pointer from the endpoint: `/semantic/impact`
    text: str  # summary of the written value
    why: str  # evidence for it
    confidence: float
    otherwise: str = ""  # alternative to it; empty if there is none
    risk: Risk = "low"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of a description that is not in the deployment."""

    what: str
    why: str


READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # They change nothing, by HTTP (RFC 9110 9.2.1).


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One callable that is to become an endpoint. Every field is the upstream's claim, not a fact."""

    name: str = ""  # identifier upstream: an operationId, the name of a tool without its service, the id of a skill
    full_name: str = ""  # whole identifier, if `name` is only a part of it
    name_kind: str = "the name"  # word for that identifier in the reasons of guesses
    method: str | None = None  # HTTP method in capitals; None if the upstream is not called by HTTP methods
    path: str | None = None  # path as described, `/pets/{petId}`; None if the upstream has no paths
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    service: str = ""  # first segment of its path, if the upstream has no paths but several services
    returns_list: bool = False  # True if the output schema is a list
    failures: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of the documented 4xx and 5xx statuses, by status: `404`, `4XX`."""
    successes: frozenset[str] = frozenset()  # documented 2xx statuses
    starts_job: bool = False  # True if the answer names work that goes on after it: a job, a task
    has_readable_state: bool = False  # True if another call returns the state that this one overwrites
    is_undone: bool = False  # True if another call takes back what this one does: the DELETE beside a POST
    signs: tuple[str, ...] = ()
    """Reasons beside its words to believe that a call changes something: `its field 'action' may be 'delete'`."""
    program: str = ""  # field that holds a program, which may do anything: `sql`, `code`, `expression`
    read_only: bool | None = None  # hint of an upstream without methods (MCP `readOnlyHint`); None if it gives none
    destructive: bool | None = None  # hint `destructiveHint` of MCP
    idempotent: bool | None = None  # hint `idempotentHint` of MCP
    claims_to_read: bool = field(init=False)  # True if the method or the hints say that a call changes nothing
    bare_path: str = field(init=False)  # path without query and fragment; empty if the upstream has no paths
    origin: str = field(init=False)  # name for a reader who knows the upstream: `GET /pets`, `list_pets`

    def __post_init__(self) -> None:
        reads = self.method in READING if self.method else self.read_only is True and self.destructive is not True
        object.__setattr__(self, "claims_to_read", reads)
        object.__setattr__(self, "bare_path", bare_path(self.path or ""))
        object.__setattr__(self, "origin", f"{self.method} {self.path}" if self.method else self.full_name or self.name)


_ENDING: Final = re.compile(r"(?<=[^/}])\.(?:json|xml|ya?ml|csv|txt|rss|html?|php|aspx?|do)$", re.IGNORECASE)


def bare_path(described: str) -> str:
    """Remove query and fragment, by which some descriptions distinguish operations, and the ending of a file."""
    return _ENDING.sub("", described.partition("#")[0].partition("?")[0])


def made_by(command: str) -> str:
    return f"Made by `bespeak import {command}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrigin:
    """The document that facades are derived from."""

    command: str  # subcommand of `bespeak import` that reads it
    form: str  # name of its form with an article: `an OpenAPI description`
    title: str = ""
    version: str = ""
    description: str = ""
    contact: str = ""  # E-mail address or URL
    source: str = ""  # file or address it was read from
    rate: Rate | None = None  # limit of calls that it states

    @property
    def made_by(self) -> str:
        return made_by(self.command)


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that holds a secret."""

    name: str
    what: str  # value to set, for the person who sets it


@dataclass(frozen=True, slots=True)
class Facade:
    candidate: Candidate
    endpoint: Endpoint
    guesses: tuple[Guess, ...]
    variables: tuple[Variable, ...] = ()
    rewritten: tuple[str, ...] = ()  # reasons why the path differs from the described one
    rate: Rate | None = None  # limit of calls that the document states for it
    file: str = ""  # file that an earlier import wrote for it; empty for a new one
    text: str = ""  # text of that file, if nothing in it changes


DANGERS: Final = {  # dangers with their phrases, the worst first; the empty key means that there is no danger
    "money": "moves money",
    "deletion": "deletes",
    "irreversible": "cannot be undone",
    "reading": "counts as reading, although its HTTP method changes things",
    "doubt": "is in doubt",
    "": "",
}
_DOUBTFUL: Final = 0.5  # confidence below which a guess is in doubt
_WEIGHTY: Final = ("/method", "/path", "/semantic/impact", "/semantic/is_idempotent", "/handler")
"""Parts of an endpoint that decide what a call does."""
_MONEY: Final = listed("money-verbs")


def is_weighty(at: str) -> bool:
    """Return True if a part of an endpoint decides what a call does."""
    return at.startswith(_WEIGHTY)


def is_doubtful(at: str, confidence: float) -> bool:
    """Return True for a doubt about the method, path or impact; a person looks at these first."""
    return at in ("/method", "/path", "/semantic/impact") and confidence < _DOUBTFUL


def is_folded(guess: Guess) -> bool:
    """Return True for a guess of low risk, which no person needs to see by itself."""
    return guess.risk == "low" and not is_doubtful(guess.at, guess.confidence)


def danger_of(endpoint: Endpoint, guesses: Iterable[tuple[str, float]] = ()) -> str:
    """Return the worst danger of an endpoint, a key of DANGERS. `guesses` are pointers with their confidence."""
    impact, handler = endpoint.semantic.impact, endpoint.handler
    method = handler.method if isinstance(handler, ExternalService) else ""
    if impact != "informational":
        if not _MONEY.isdisjoint(_acted_on(endpoint)):
            return "money"
        if method == "DELETE" or main_class(endpoint.method.lower()) == "DELETE":
            return "deletion"
        if impact == "irreversible":
            return "irreversible"
    elif method and method not in READING:
        return "reading"
    return "doubt" if any(confidence < _DOUBTFUL and is_weighty(at) for at, confidence in guesses) else ""


def _acted_on(endpoint: Endpoint) -> set[str]:
    """Return the words for what a call does: its method and the last names in the paths, here and upstream."""
    handler = endpoint.handler
    paths = [endpoint.path, urlsplit(handler.url).path if isinstance(handler, ExternalService) else ""]
    last = [name for path in paths for name in [part for part in path.split("/") if part and "{" not in part][-1:]]
    return {singular(word) for part in (endpoint.method, *last) for word in words(part)}
