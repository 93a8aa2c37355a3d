"""The panel of meaning: what is registered, who has confirmed it, and how the calls went that were mapped."""

from __future__ import annotations

from bespeak.extensions.semantics.store import (
    ArtifactRow,
    ListArtifacts,
    ListConfirmed,
    ListMappedCalls,
    ReadArtifact,
)
from bespeak.terminal import panels
from bespeak.terminal.panels import cells

_COMMAND = "bespeak semantic list"


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    (since,) = panels.read_cursor(request.after, (0,))
    found: list[ArtifactRow] = await request.store.read(ListArtifacts(None, since, panels.MOST_ROWS + 1))
    confirmed: dict[str, str] = await request.store.read(ListConfirmed())
    shown, rest = panels.page(found, lambda row: (row.revision,))
    rows = [
        panels.Row(
            f"{row.kind} {row.version} {row.id}",
            cells(row.kind, row.id, row.version, row.signer or "unsigned", confirmed.get(row.digest), row.actor)
            + cells(panels.written(row.registered)),
            (panels.SHOW,),
            "confirmed" if row.digest in confirmed else "",
        )
        for row in shown
    ]
    calls = [
        panels.row(f"{one.source} {one.target}", one.source, one.target, one.succeeded, one.failed)
        for one in await request.store.read(ListMappedCalls(panels.MOST_ROWS))
    ]
    columns = ("Kind", "Name", "Version", "Signed by", "Confirmed by", "From", "Since")
    actions = {panels.SHOW: panels.Action("Show", command="bespeak semantic show NAME --version VERSION --kind KIND")}
    return [
        panels.Table("Registered", columns, rows, actions, rest, "Nothing is registered.", _COMMAND),
        panels.Table(
            "Mapped calls", ("From", "To", "Succeeded", "Failed"), calls, empty="No call was mapped.", command=_COMMAND
        ),
    ]


async def show_one(request: panels.PanelRequest) -> list[panels.Block] | None:
    """Show an ontology, an alignment or a context; its key is kind, version and name."""
    kind, _, rest = request.key.partition(" ")
    version, _, name = rest.partition(" ")
    if kind not in ("ontology", "alignment", "context"):
        return None
    found = await request.store.read(ReadArtifact(kind, name, version))  # type: ignore[arg-type]
    if found is None:
        return None
    command = panels.shell("semantic", "show", name, "--version", version, "--kind", kind)
    content = found.content.decode(errors="replace")
    return [
        panels.json_text("About it", found.row.document(), command),
        panels.text("Content", content, f"{command} --content"),
    ]
