"""A rule: what it is called, how binding it is, which section of a draft it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.source.span import Location
from bespeak.text.source.tree import Tree

Normative = Literal["MUST", "SHOULD", "style"]
Fixable = Literal["none", "safe", "unsafe"]
Notation = Literal["yaml", "toml", "json", "python", "http"]

SEVERITY: Final[dict[Normative, Severity]] = {"MUST": "error", "SHOULD": "warning", "style": "info"}
"""What a draft demands is an error, what it recommends a warning, what only reads better an advice."""


class Located(Protocol):
    """What a finding can be about: an endpoint, for one. Its text names it in messages."""

    @property
    def location(self) -> Location | None:
        """The place where it is declared."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its id never changes its meaning."""

    id: str
    name: str
    """What the finding is, in a few words joined by hyphens."""
    normative: Normative
    source: str
    """The draft's section, `AGTP-API 5.1`."""
    summary: str
    """What the rule asks, in one sentence."""
    why: str = ""
    """What goes wrong for an agent or an author when it is broken."""
    bad: str = ""
    """The smallest piece of a document that breaks it."""
    good: str = ""
    """The same piece, mended."""
    fix: Fixable = "none"
    """Whether findings come with a repair, and whether that repair keeps the meaning by itself."""
    notation: Notation = "yaml"
    """Of the two pieces: YAML is an .agis file, TOML an endpoint file or a configuration, JSON what is published,
    HTTP what a server answers."""

    @property
    def severity(self) -> Severity:
        """How grave a finding of this rule is."""
        return SEVERITY[self.normative]

    @property
    def is_agis(self) -> bool:
        """Whether only AGIS asks for it. In other documents it is advice: AGTP-API decides what is valid there."""
        return self.source.startswith("AGIS")

    def at(
        self,
        endpoint: Located,
        pointer: str,
        message: str,
        advice: str = "",
        fix: Fix | None = None,
        *,
        on_key: bool = False,
    ) -> Diagnostic:
        """Report a finding in an endpoint. Pointers, also of a fix, start at the endpoint and use the model's names."""
        where = f"/endpoint{pointer}"
        return Diagnostic(
            self.id, self.severity, f"{endpoint}: {message}", endpoint.location, where, advice, fix, on_key
        )

    def inside(
        self, pointer: str, message: str, advice: str = "", fix: Fix | None = None, *, on_key: bool = False
    ) -> Diagnostic:
        """Report a finding in a document other than an endpoint, at a pointer from its root."""
        return Diagnostic(self.id, self.severity, message, None, pointer, advice, fix, on_key)

    def in_tree(
        self, tree: Tree, pointer: str, message: str, advice: str = "", fix: Fix | None = None, *, on_key: bool = False
    ) -> Diagnostic:
        """Report a finding at a pointer of a parsed text."""
        place = tree.locate(pointer, key=on_key)
        return Diagnostic(self.id, self.severity, message, place, pointer, advice, fix, on_key)

    def found(
        self,
        message: str,
        location: Location | None = None,
        pointer: str = "",
        advice: str = "",
        fix: Fix | None = None,
        *,
        severity: Severity | None = None,
    ) -> Diagnostic:
        """Report a finding at a place; `severity` is for a finding that is graver or lighter than the rule."""
        return Diagnostic(self.id, severity or self.severity, message, location, pointer, advice, fix)
