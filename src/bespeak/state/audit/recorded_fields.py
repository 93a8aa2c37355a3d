"""Check of the input fields that an operator wants recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bespeak.contract.endpoint import Endpoint
from bespeak.state.audit.rules import UNUSED_AUDIT_SETTING
from bespeak.text.diagnostics.diagnostic import Diagnostic


def unknown_fields(
    fields: Mapping[tuple[str, str], tuple[str, ...]], endpoints: Iterable[Endpoint]
) -> list[Diagnostic]:
    """Return a warning for each endpoint and field of `[audit.fields]` that does not exist."""
    served = {endpoint.key: endpoint for endpoint in endpoints}
    findings = []
    for (method, path), names in fields.items():
        endpoint = served.get((method, path))
        if endpoint is None:
            message = f"audit.fields names {method} {path}, which is not a served endpoint"
            advice = "Write the method and the path as the endpoint has them, {parameters} included."
            findings.append(UNUSED_AUDIT_SETTING.found(message, advice=advice))
            continue
        known = endpoint.input_schema.get("properties", {})
        for name in names:
            if name not in known:
                message = f"audit.fields names {name!r} of {method} {path}, which is not an input of that endpoint"
                advice = f"It takes {', '.join(list(known)[:10]) or 'none'}."
                findings.append(UNUSED_AUDIT_SETTING.found(message, advice=advice))
    return findings
