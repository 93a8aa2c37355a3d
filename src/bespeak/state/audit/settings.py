"""Settings of the audit trail: `[audit]`, and the check of the input fields that it records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.state import rules
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.settings import declared, setting
from bespeak.text.reading.table import Table

_REFERENCE_SWITCH: Final = "attribution_records_enabled"
REFERENCE_KEYS: Final = ("path", _REFERENCE_SWITCH)  # of the reference implementation; here the store has the trail
_SECRET: Final = re.compile(
    r"(?i)passw|passphrase|secret|token|credential|api_?key|private_?key|(?:^|_)(?:pin|cvv|cvc|otp|ssn|iban)(?:_|$)|card"
)


def _read_fields(block: Table, key: str) -> dict[tuple[str, str], tuple[str, ...]] | None:
    """Read `"BOOK /room" = ["guest_id"]`: a method and a path, then names of its input."""
    table = block.table(key)
    if table is None:
        return None
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, endpoint in table.endpoints(rules.RECORDED_FIELD_ENDPOINT):
        found[endpoint] = tuple(dict.fromkeys(table.texts(name)))
        for secret in filter(_SECRET.search, found[endpoint]):
            message = f"{brief(secret)} of {' '.join(endpoint)} looks like a secret, and every record would contain it"
            advice = "Leave it out: nothing can be removed from the trail afterwards."
            table.warning(rules.SECRET_RECORDED, name, message, advice)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The audit trail: what is recorded, and how it is sealed."""

    records: str | None = setting(
        None,
        "What is recorded. `governance`: irreversible calls, changes by standard methods, confirmations, and refusals "
        "for lack of authority; `all`: every answer; `off`: nothing. Without it: `governance`, `off` if the store is "
        "`memory`, `all` if the table has other keys.",
        choices=("governance", "all", "off"),
        security=True,
    )
    enabled: bool | None = setting(None, "Older form of `records`: true for `all`, false for `off`.", kind="boolean")
    sign: str | None = setting(
        None,
        "What is signed: `each` record, `checkpoints` only, or `none` to end signing. Without it: each record, if "
        "there is a signing key.",
        choices=("each", "checkpoints", "none"),
        security=True,
    )
    discovery: bool = setting(False, "Also record calls of built-in methods that change nothing.")
    checkpoint_every: int = setting(
        1000,
        "Records between two checkpoints.",
        bounds=(1, 1_000_000),
        rule=rules.CHECKPOINT_DISTANCE,
        advice="Only records after the last checkpoint can be lost unnoticed.",
    )
    fields: Mapping[tuple[str, str], tuple[str, ...]] = setting(
        {},
        '`"METHOD /path" = ["name"]`: the input that is recorded. All other input is not.',
        kind="map",
        read=_read_fields,
    )

    def checked(self, table: Table) -> AuditSettings:
        """Decide what is recorded if only older keys are written; report keys without effect."""
        given = [key for _, key, _ in declared(AuditSettings) if table.has(key)]
        records, reason = self.records, "records"
        if records is None and self.enabled is not None:
            records, reason = self.recording(lasting=True), "enabled"
        elif records is None and (given or not any(table.has(key) for key in REFERENCE_KEYS)):
            records = "all"  # before there were `records`, the table meant all of them
        elif records is None and isinstance(switch := table.value(_REFERENCE_SWITCH), bool):
            records = "all" if switch else "off"
        unused = [key for key in given if key not in ("records", "enabled")] if records == "off" else []
        if reason == "records" and self.records is not None and self.enabled is not None:
            unused.append("enabled")
        if unused:
            others = ", ".join(f"`{key}`" for key in unused)
            said = f"`records` is {self.records!r}" if reason == "records" else "`enabled` is false"
            message = f"{others} has no effect: {said}"
            table.findings.warning(
                rules.UNUSED_AUDIT_SETTING, message, table.at, 'Write records = "all", or remove the rest.'
            )
        return replace(self, records=records, enabled=None)

    def recording(self, *, lasting: bool) -> str:
        """Return what is recorded in a store that outlives its process, or not."""
        if self.records is None and self.enabled is not None:
            return "all" if self.enabled else "off"
        return self.records or ("governance" if lasting else "off")

    def check_key(self, table: Table) -> None:
        """Report settings that need a signing key if none is configured."""
        if self.sign not in (None, "none"):
            message = f"`sign` is {self.sign!r}, but there is no signing key"
            advice = (
                'Make one with `bespeak keys new --out server.pem`, and write signing_key = "server.pem" in [server].'
            )
            table.error(rules.SIGNING_WITHOUT_KEY, "sign", message, advice)
        if table.has("checkpoint_every") and self.checkpoint_every == table.value("checkpoint_every"):
            message = "`checkpoint_every` has no effect: a checkpoint is a signature, and there is no signing key"
            table.warning(
                rules.UNUSED_AUDIT_SETTING, "checkpoint_every", message, 'Write signing_key = "FILE" in [server].'
            )


def unknown_fields(fields: Mapping[tuple[str, str], tuple[str, ...]], existing: Iterable[Endpoint]) -> list[Diagnostic]:
    """Return a warning for each endpoint and field of `[audit.fields]` that does not exist."""
    served = {endpoint.key: endpoint for endpoint in existing}
    findings = []
    for (method, path), names in fields.items():
        endpoint = served.get((method, path))
        if endpoint is None:
            message = f"audit.fields names {method} {path}, which is not a served endpoint"
            advice = "Write the method and the path as the endpoint has them, {parameters} included."
            findings.append(rules.UNUSED_AUDIT_SETTING.found(message, advice=advice))
            continue
        known = endpoint.input_schema.get("properties", {})
        for name in names:
            if name not in known:
                message = f"audit.fields names {name!r} of {method} {path}, which is not an input of that endpoint"
                advice = f"It takes {', '.join(list(known)[:10]) or 'none'}."
                findings.append(rules.UNUSED_AUDIT_SETTING.found(message, advice=advice))
    return findings
