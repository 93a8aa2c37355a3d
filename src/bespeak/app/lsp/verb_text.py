"""Documentation of a verb as Markdown: its catalog entry, or the findings about it."""

from __future__ import annotations

from collections.abc import Sequence

from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.text.diagnostics.diagnostic import Diagnostic


def verb_text(name: str, catalog: Catalog, found: Sequence[Diagnostic] = ()) -> str:
    """Return Markdown about a verb. `found` are the findings about it at its place."""
    verb = catalog.verbs.get(name.upper())
    if verb is not None:
        return _entry(verb, catalog)
    legacy = catalog.legacy.get(name.upper())
    parts = [f"**{name}** is not in the catalog {catalog.version}."]
    if legacy is not None:
        parts.append(f"It is an HTTP verb: {legacy.description} Use **{legacy.preferred}**.")
    elif near := catalog.near(name.upper()):
        parts.append(f"Similar verbs: {', '.join(near[:4])}.")
    parts += (f"{finding.rule}: {finding.message}. {finding.help}".rstrip() for finding in found)
    return "\n\n".join(parts)


def _entry(verb: Verb, catalog: Catalog) -> str:
    parts = [f"**{verb.name}** · {', '.join(verb.categories)}", verb.description]
    if verb.deprecated_in:
        successor = f", use **{verb.successor}**" if verb.successor else ""
        removed = f" and is removed in {verb.removed_in}" if verb.removed_in else ""
        parts.append(f"Deprecated since {verb.deprecated_in}{removed}{successor}.")
    parts.append(f"Catalog {catalog.version}")
    return "\n\n".join(parts)
