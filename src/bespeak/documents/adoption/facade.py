"""One endpoint in front of an upstream, and the document it was derived from."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.rate import Rate
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.guess import Guess


def made_by(command: str) -> str:
    """Return the first words of every file that `bespeak import COMMAND` writes; a later run recognises its files."""
    return f"Made by `bespeak import {command}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The document that facades are derived from."""

    command: str
    """Subcommand of `bespeak import` that reads it."""
    form: str
    """Name of its form with an article: `an OpenAPI description`."""
    title: str = ""
    version: str = ""
    description: str = ""
    contact: str = ""
    """E-mail address or URL."""
    source: str = ""
    """File or address it was read from."""
    rate: Rate | None = None
    """Limit of calls that it states."""

    @property
    def made_by(self) -> str:
        """First words of every file derived from it."""
        return made_by(self.command)


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that holds a secret."""

    name: str
    what: str
    """Value to set, for the person who sets it."""


@dataclass(frozen=True, slots=True)
class Facade:
    """One endpoint and the candidate it was derived from."""

    candidate: Candidate
    endpoint: Endpoint
    guesses: tuple[Guess, ...]
    variables: tuple[Variable, ...] = ()
    rewritten: tuple[str, ...] = ()
    """Reasons why the path differs from the described one."""
    rate: Rate | None = None
    """Limit of calls that the document states for it."""
    file: str = ""
    """File that an earlier import wrote for it; empty for a new one."""
    text: str = ""
    """Text of that file, if nothing in it changes."""
