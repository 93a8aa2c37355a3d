"""What a check gets, a document with its endpoints and the context, and what is reported of a check that raises."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.service import Vocabulary
from bespeak.text.diagnostics.diagnostic import Diagnostic, Located, Rule, brief, declared_in
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.tree import Location, Tree

if TYPE_CHECKING:
    from bespeak.documents.agis.document import AgisDocument
    from bespeak.documents.ai.document import AiDocument

Kind = Literal["agis", "endpoint", "server", "recipes", "manifest", "ai", "agent"]

AGIS_NAMES: Final = {  # AGIS pointers for members of the contract model that AGIS names differently.
    "/semantic/impact": "/semantic/impact_tier",
    "/input_schema": "/input",
    "/output_schema": "/output",
}


@dataclass(frozen=True, slots=True)
class Declared:
    endpoint: Endpoint
    at: str  # pointer of the endpoint in the document: `/endpoint`, `/endpoints/3`
    written: Mapping[str, Any]  # entry as written, to distinguish given values from defaults
    names: Mapping[str, str] = field(default_factory=dict)  # Pointers that this document names differently.

    @property
    def semantic(self) -> Mapping[str, Any]:
        """Semantic block as written."""
        return as_mapping(self.written.get("semantic"))

    def place(self, finding: Diagnostic) -> Diagnostic:
        """Translate the pointers of an endpoint finding to this document."""
        fix = finding.fix
        if fix is not None:
            fix = replace(fix, changes=tuple(replace(change, at=self.pointer(change.at)) for change in fix.changes))
        return replace(finding, pointer=self.pointer(finding.pointer.removeprefix("/endpoint")), fix=fix)

    def pointer(self, inside: str) -> str:
        """Translate a pointer relative to the endpoint model to the document."""
        for name, written in self.names.items():
            if inside == name or inside.startswith(f"{name}/"):
                return f"{self.at}{written}{inside[len(name) :]}"
        return f"{self.at}{inside}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    kind: Kind
    tree: Tree
    endpoints: tuple[Declared, ...] = ()
    found: tuple[Diagnostic, ...] = ()  # findings of the reader
    agis: AgisDocument | None = None
    ai: AiDocument | None = None
    policies: Policies | None = None  # policies of a server configuration or a manifest
    recipes: tuple[Recipe, ...] = ()

    @property
    def data(self) -> Mapping[str, Any]:
        """Document as plain data; empty if it is not a mapping."""
        return as_mapping(self.tree.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintContext:
    catalog: Catalog
    policies: Policies = field(default_factory=Policies)
    recipes: Sequence[Recipe] = ()
    vocabulary: Vocabulary | None = None  # vocabulary of the AGIS document that contains the endpoint
    level: int = 1  # conformance level of AGIS 3.3 that the author targets: 1 or 2
    allowed_verbs: frozenset[str] = frozenset()  # verbs, in capitals, that the author exempts from passes 2 and 3
    agis: bool = True  # True for an AGIS document; elsewhere the catalog decides which verbs are valid
    allowed_segments: frozenset[str] = frozenset()  # path segments that the author exempts from pass 4


FAILED: Final = Rule("D194", "check-failed", "MUST", "bespeak")

_ADVICE: Final = "This is a bug in bespeak, and all other checks ran. Report it with the document."


def attempt(*calls: tuple[Any, ...], endpoint: Located | None = None) -> Iterator[Diagnostic]:
    """Yield the findings of checks, given with their arguments; of one that raises, a finding with the cause."""
    for check, *arguments in calls:
        try:
            yield from check(*arguments)
        except Exception as error:  # noqa: BLE001 - no rule may stop the others
            ids = list(declared_in(sys.modules[check.__module__]))
            rules = f" of {ids[0]} to {ids[-1]}" if ids else ""
            message = f"the check {check.__module__.rpartition('.')[2]}.{check.__name__}{rules} {describe(error)}"
            yield FAILED.inside("", message, _ADVICE) if endpoint is None else FAILED.at(endpoint, "", message, _ADVICE)


def failed_document(what: str, error: Exception, file: str) -> Diagnostic:
    """Report that a whole document could not be read or fixed."""
    return FAILED.found(f"{what} {describe(error)}", Location(file), advice=_ADVICE)


def describe(error: Exception) -> str:
    """Describe an exception and the line of bespeak that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    return f"failed with {type(error).__name__}: {brief(str(error))}{place}"
