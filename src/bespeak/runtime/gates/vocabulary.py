"""459: the method is not in the catalog. Legacy verbs become AGTP methods here, where opted in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.runtime.disclosure import find_visible
from bespeak.runtime.method_grammar import check_method_grammar

# AGTP-API 3.6: what a legacy verb means when no endpoint of the preferred verb is on the path.
_LEGACY: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "GET": ("QUERY", {}),
    "POST": ("EXECUTE", {}),
    "PUT": ("EXECUTE", {"idempotency_key": None}),  # None: the caller has to send one
    "DELETE": ("EXECUTE", {"action": "delete"}),
    "PATCH": ("EXECUTE", {"action": "modify"}),
}


def vocabulary_gate(call: Call) -> Refused | None:
    """Admit catalog and custom methods, including deprecated ones: a deprecated verb is never a 459 (4.4)."""
    routes = call.routes
    if METHOD_GRAMMAR in call.request.headers:
        # AGIS 1.3: the grammar decides instead of the catalog, so that a Tier 4 method reaches routing.
        return check_method_grammar(call)
    method = call.method
    if method in routes.admitted:
        return None
    if method in routes.policies.methods.legacy:
        _translate_legacy(call)
        return None
    catalog = routes.catalog
    near = catalog.near(method)
    legacy = catalog.legacy.get(method)
    if legacy is not None:
        message = f"{method} is a legacy verb, which this server does not accept; use {legacy.preferred}."
    else:
        advice = f" Did you mean {', '.join(near)}?" if near else " `DISCOVER /methods` lists the methods here."
        message = f"{_shown(method)} is not in method catalog {catalog.version}.{advice}"
    return Refused(
        status.METHOD_VIOLATION,
        "method-violation",
        message,
        {"method": _shown(method), "catalog_version": catalog.version, "suggestions": near},
    )


def _translate_legacy(call: Call) -> None:
    """Translate a legacy verb by what is registered on the path (AGTP-API 3.6)."""
    asked, routes = call.method, call.routes
    # Verbs that the policy disallows or redirects stay unchanged: the policy gate handles them.
    if asked in routes.policies.methods.disallow or routes.redirects.follow(asked, call.path)[0] != asked:
        return
    preferred = routes.catalog.legacy[asked].preferred
    if find_visible(call, preferred, call.path) is not None:
        call.method = preferred
        return
    call.method, preset = _LEGACY[asked]
    call.preset = dict(preset)


def _shown(method: str) -> str:
    return method if len(method) <= 64 else method[:61] + "..."
