"""454: AGIS rules for the method of a request with `Method-Grammar: AGIS/1.0` (9.2, 13)."""

from __future__ import annotations

from typing import Final

from bespeak.checks.lint.rules.method import method_findings
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic

GRAMMAR: Final = "AGIS/1.0"

_SHOWN: Final = 64


def check_method_grammar(call: Call) -> Refused | None:
    """Run passes 2 and 3 on the method of a request that asks for them. Warnings do not refuse it."""
    asked = call.request.headers[METHOD_GRAMMAR]
    if asked.strip().upper() != GRAMMAR:
        # A caller that names a grammar relies on it, so an unknown one must not be ignored.
        return Refused(
            status.BAD_REQUEST,
            "unsupported-grammar",
            f"This server applies the method grammar {GRAMMAR}, not {brief(asked)}; say that, or leave the header out.",
            {"method_grammar": asked[:80], "supported": [GRAMMAR]},
        )
    findings = _judge(call)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        return Refused(
            status.GRAMMAR_VIOLATION,
            "grammar-violation",
            f"{errors[0].message}. {errors[0].help}",
            {"method": call.method[:_SHOWN], "grammar": GRAMMAR, "findings": [_as_members(error) for error in errors]},
        )
    # AGIS 4.1(e): methods are compared without regard to case.
    call.method = call.method.upper()
    return None


def _judge(call: Call) -> list[Diagnostic]:
    """Check a method: a declared verb is checked for its form only, any other custom method is accepted."""
    service = call.routes.service
    declared = service.vocabulary.declared_verbs if service.vocabulary else ()
    custom = call.routes.policies.methods.custom if call.method.upper() not in declared else ()
    return method_findings(call.method, custom, call.routes.catalog, declared)


def _as_members(finding: Diagnostic) -> dict[str, str]:
    return {"rule": finding.rule, "message": finding.message, "help": finding.help}
