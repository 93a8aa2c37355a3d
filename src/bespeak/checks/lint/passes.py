"""The eight validation passes of AGIS 9.1 in order, and the requirements of AGTP-API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from bespeak.checks.lint.rules import (
    ai_discovery,
    composition,
    data_manifest,
    error,
    handler,
    intent,
    manifest,
    mcp_tool,
    method,
    path,
    policy,
    recipe,
    reference,
    review,
    schema,
    security,
    semantic,
    upstream,
    vocabulary,
)
from bespeak.checks.lint.subject import Declared, LintContext, Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in

RULES: Final = declared_in(  # All rules by id. A server registers with only a few of them and does not load this table.
    *(manifest, ai_discovery, method, path, semantic, intent, vocabulary, data_manifest),
    *(schema, reference, error, mcp_tool, handler, upstream, policy, recipe, composition, security, review),
)

EndpointCheck = Callable[[Declared, LintContext], Iterable[Diagnostic]]
DocumentCheck = Callable[[Subject, LintContext], Iterable[Diagnostic]]


@dataclass(frozen=True, slots=True)
class Pass:
    """Validation pass with its checks of endpoints and of whole documents."""

    number: int
    name: str
    summary: str
    ids: tuple[str, ...]  # prefixes of the ids of its rules
    endpoint: tuple[EndpointCheck, ...] = ()
    document: tuple[DocumentCheck, ...] = ()


PASSES: Final = (  # Passes in the order of the draft.
    # Reading a document is its first pass: `documents.agis.document`.
    Pass(1, "Structural", "every required field is present and valid", ("D12",)),
    Pass(
        2,
        "Method Syntax",
        "every method is one word in capitals, a verb in its imperative base form",
        ("M21", "M22"),
        endpoint=(method.check_syntax,),
    ),
    Pass(
        3,
        "Method Class",
        "every method requests an action, and none is an HTTP method",
        ("M23", "M24"),
        endpoint=(method.check_class,),
    ),
    Pass(4, "Path Syntax", "every path names things, without verbs", ("P32", "P33", "P34"), endpoint=(path.check,)),
    Pass(
        5,
        "Semantic Completeness",
        "every semantic block has an intent, an actor and an outcome that an agent can use",
        ("S41", "S42", "S43", "S44", "X90"),
        endpoint=(semantic.check, intent.check, semantic.check_consequences, semantic.check_hints, security.check),
        document=(security.check_document,),
    ),
    Pass(
        6,
        "Semantic Consistency",
        "no intent contradicts its method",
        ("S45", "S46"),
        endpoint=(intent.check_consistency,),
    ),
    Pass(
        7,
        "Vocabulary Integrity",
        "the declared verbs are those in use, and the data manifest discloses nothing",
        ("V50", "V51", "V52", "V53"),
        document=(vocabulary.check_document, data_manifest.check_document),
    ),
    Pass(
        8,
        "Schema Completeness",
        "every endpoint has valid schemas for input and output, and names its errors",
        ("J62", "J63", "J64", "X92"),
        endpoint=(schema.check, error.check, security.check_schemas),
        document=(reference.check_document, mcp_tool.check_document),
    ),
)


def pass_of(rule: str) -> int:
    """Return the pass of AGIS 9.1 that a rule belongs to; 0 for rules of AGTP-API and of files."""
    return next((step.number for step in PASSES if rule.startswith(step.ids)), 0)


DOCUMENTS: Final[tuple[DocumentCheck, ...]] = (  # Checks of whole documents other than AGIS; each check knows its kind.
    manifest.check_document,
    recipe.check_document,
    ai_discovery.check_document,
    review.check_document,
)
