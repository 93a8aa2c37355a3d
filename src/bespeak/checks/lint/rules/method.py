"""M2xx: the method of an endpoint is in the catalog (AGTP-API 3) and a single verb in its base form (AGIS 4)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import versions_with
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.policy import MethodPolicy
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.source.tree import Change

if TYPE_CHECKING:
    from bespeak.text.language.verb_form import FaultKind, MethodFault

SYNTAX: Final = Rule("M201", "method-syntax", "MUST", "AGTP-API 3.2")
UNKNOWN: Final = Rule("M202", "unknown-method", "MUST", "AGTP-API 3.2, 4.5", fix="unsafe")
LEGACY: Final = Rule("M203", "legacy-method", "MUST", "AGTP-API 3.6", fix="unsafe")
DEPRECATED: Final = Rule("M204", "deprecated-method", "SHOULD", "AGTP-API 4.2", fix="unsafe")
NOT_ADMITTED: Final = Rule("M205", "unreachable-method", "SHOULD", "AGTP-API 9.2")

_BY_KIND: Final[dict[FaultKind, Rule]] = {  # AGIS rule for each kind of fault.
    "whitespace": Rule("M210", "method-with-whitespace", "MUST", "AGIS 4.1(a)", fix="unsafe"),
    "inflected": Rule("M211", "inflected-method", "MUST", "AGIS 4.1(b)", fix="unsafe"),
    "characters": Rule("M212", "method-characters", "MUST", "AGIS 4.1(c)", fix="unsafe"),
    "compound": Rule("M213", "compound-method", "MUST", "AGIS 4.1(d)", fix="unsafe"),
    "case": Rule("M214", "method-case", "SHOULD", "AGIS 4.1(e)", fix="safe"),
    "phrasal": Rule("M215", "phrasal-method", "style", "AGIS 4.1(d)"),
    "unknown": Rule("M216", "unknown-verb", "MUST", "AGIS 4.1(b)", fix="unsafe"),
    "foreign": Rule("M218", "verb-not-verified", "SHOULD", "AGIS 13"),
    "length": Rule("M217", "method-length", "SHOULD", "AGTP-API 3.2"),
    "http": Rule("M230", "http-method", "MUST", "AGIS 4.3", fix="unsafe"),
    "state": Rule("M231", "state-as-method", "MUST", "AGIS 4.2"),
    "being": Rule("M232", "being-as-method", "MUST", "AGIS 4.2"),
    "noun": Rule("M233", "noun-as-method", "MUST", "AGIS 4.2"),
    "vague": Rule("M234", "vague-method", "SHOULD", "AGIS 4.2"),
}


_FORMS: Final = frozenset({"inflected", "compound", "unknown", "foreign"})
"""Faults in the form of a word. Catalog entries count as verbs, whatever the lexicon says."""
_WORDS: Final = _FORMS | {"phrasal", "state", "being", "noun", "vague"}  # Faults that the author may overrule.
_LONGEST: Final = 32
_CLASS: Final = frozenset({"http", "state", "being", "noun", "vague"})  # faults of pass 3; the others belong to pass 2


def check_endpoint(endpoint: Endpoint, catalog: Catalog, policy: MethodPolicy) -> Iterator[Diagnostic]:
    """Check the method of one endpoint as registration does: is it in the catalog and admitted?"""
    method = endpoint.method
    if method.upper() in catalog.legacy:
        preferred = catalog.legacy[method.upper()].preferred
        advice = f"Declare {preferred}; a server that opts in maps legacy requests by itself."
        message = f"{method} is an HTTP verb, which is for legacy callers only"
        yield LEGACY.at(endpoint, "/method", message, advice, _instead(preferred))
        return
    if not is_method_name(method):
        yield SYNTAX.at(
            endpoint,
            "/method",
            f"{brief(method)} is not a valid method: a method is 3 to 32 capital letters",
            _suggest(catalog.suggest(method)),
        )
        return
    verb = catalog.verbs.get(method)
    if verb is None and method not in policy.custom:
        known_in = versions_with(method)
        once = f" (catalog {known_in[-1]} has it)" if known_in else ""
        message = f"{method} is not in catalog {catalog.version}{once} and not a custom method of this server"
        near = catalog.suggest(method)
        advice = _suggest(near) or "Use a verb of `bespeak catalog list`, or declare it in policies.methods.custom."
        yield UNKNOWN.at(endpoint, "/method", message, advice, _instead(near[0]) if len(near) == 1 else None)
        return
    if verb is not None and verb.deprecated_in is not None:
        going = f" and goes in {verb.removed_in}" if verb.removed_in else ""
        message = f"{method} is deprecated since catalog {verb.deprecated_in}{going}"
        advice, fix = (f"Use {verb.successor}.", _instead(verb.successor)) if verb.successor else ("", None)
        yield DEPRECATED.at(endpoint, "/method", message, advice, fix)
    if not policy.admits(method):
        message = f"the method policy of this server does not admit {method}, so every call gets 405"
        yield NOT_ADMITTED.at(endpoint, "/method", message, "Allow the method or remove the endpoint.")


def check_syntax(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Run pass 2: the method of an endpoint is one word, in its base form."""
    return _check_word(declared, context, in_class=False)


def check_class(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Run pass 3: the method of an endpoint requests an action, and is not an HTTP method."""
    return _check_word(declared, context, in_class=True)


def method_findings(
    method: str, allowed: Container[str], catalog: Catalog, known: Container[str] = ()
) -> list[Diagnostic]:
    """Run passes 2 and 3 on a method alone, as a transport does (AGIS 9.2).

    An `allowed` method passes whatever the lexicon says; a `known` one is a verb, though perhaps in a wrong form. Both
    are in capitals.
    """
    vouch = "`DISCOVER /methods` lists the verbs of this server."
    return [
        _BY_KIND[fault.kind].inside("", fault.message, fault.advice)
        for fault in _faults(method, method.upper() in allowed, catalog, vouch)
        if not (fault.kind in ("unknown", "foreign") and method.upper() in known)
    ]


def _check_word(declared: Declared, context: LintContext, *, in_class: bool) -> Iterator[Diagnostic]:
    endpoint, catalog = declared.endpoint, context.catalog
    name = endpoint.method.upper()
    if not context.agis and name in catalog.names:
        return  # there the catalog of AGTP-API decides which verbs are valid
    allowed = name in context.allowed_verbs or name in context.policies.methods.custom
    written = declared.written.get("method") if context.agis else None
    method = written if isinstance(written, str) else endpoint.method  # the model has it in capitals
    vouch = "Write a verb in its base form; if it is a verb of another language, name it in allowed-verbs."
    for fault in _faults(method, allowed, catalog, vouch):
        if (fault.kind in _CLASS) is in_class:
            fix = _instead(fault.instead, safe=fault.safe) if fault.instead else None
            yield _BY_KIND[fault.kind].at(endpoint, "/method", fault.message, fault.advice, fix)


def _faults(method: str, allowed: bool, catalog: Catalog, unknown: str) -> Iterator[MethodFault]:
    """Yield the faults that apply with this catalog; `unknown` is the advice for a word without a similar verb."""
    # A plain server does without English.
    from bespeak.text.language.verb_form import judge_method, may_be_foreign  # noqa: PLC0415

    for fault in judge_method(method):
        if allowed and fault.kind in _WORDS and method.isalpha():
            continue
        if fault.kind in _FORMS and method.upper() in catalog.names:
            continue
        if fault.kind == "unknown":
            near = catalog.suggest(method)
            if len(method) <= _LONGEST and may_be_foreign(method, near):
                yield fault._replace(kind="foreign", message=f"{method} is not a verb of English", advice=unknown)
                continue
            yield fault._replace(advice=_suggest(near) or unknown, instead=near[0] if len(near) == 1 else "")
        else:
            yield fault


def _instead(method: str, *, safe: bool = False) -> Fix:
    return Fix(f"Write {method}", (Change("replace", "/method", method),), safe=safe)


def _suggest(near: list[str]) -> str:
    return f"Did you mean {' or '.join(near)}?" if near else ""
