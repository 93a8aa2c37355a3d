"""The panel of proposals: what agents ask for, how the seven evaluations went, and the plan of what was made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from bespeak.contract.recipe import Recipe
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.extensions.negotiation import store as kept
from bespeak.extensions.negotiation.evaluation import POLICY
from bespeak.extensions.negotiation.store import ProposalRow
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import read_endpoint
from bespeak.state.store.store import Conflict
from bespeak.terminal import panels
from bespeak.terminal.panels import cells

_EVALUATIONS: Final = (  # AGTP-API 10.3
    ("Method conformance", "The method is in the catalog, or a custom method of the policy."),
    ("Path conformance", "The path keeps the grammar."),
    ("Semantic block conformance", "Intent, outcome and impact are there and valid."),
    ("Schema conformance", "Input and output schemas are valid and safe."),
    ("Authority sufficiency", "The scopes of the agent cover the endpoint and every step."),
    ("Capability envelope", "The server can compose it from its own endpoints."),
    ("Policy acceptance", "The policy permits this method and path, and the composition."),
)
_PASSED, _REFUSED, _OPEN, _WAITING = "passed", "refused", "not reached", "waiting"
_ACTIONS: Final = {
    panels.SHOW: panels.Action("Show", command="bespeak proposals show KEY"),
    **{
        name: panels.decision(name.capitalize(), f"bespeak proposals {name}")
        for name in ("approve", "reject", "revoke")
    },
}
_OFFERED: Final = {kept.PENDING: ("approve", "reject"), kept.APPROVED: ("revoke",)}
_COLUMNS: Final = ("Endpoint", "Agent", "Since", "Until", "Kept", "Decided by")
_COMMAND: Final = "bespeak proposals list"


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    after = panels.read_cursor(request.after, (0.0, ""))
    pending = kept.ListProposals(kept.PENDING, panels.MOST_ROWS + 1, after)
    shown, rest = panels.page(await request.store.read(pending), lambda row: (row.created, row.proposal_id))
    nothing = "No proposal waits for an operator."
    blocks: list[panels.Block] = [
        panels.Table(
            "Waiting for an operator", _COLUMNS, [_row(one) for one in shown], _ACTIONS, rest, nothing, _COMMAND
        )
    ]
    for title, state in (("In use", kept.APPROVED), ("Rejected", kept.REJECTED), ("Revoked", kept.REVOKED)):
        found = await request.store.read(kept.ListProposals(state, panels.MOST_ROWS))
        rows, command = [_row(one) for one in found], f"{_COMMAND} --state {state}"
        blocks.append(panels.Table(title, _COLUMNS, rows, _ACTIONS, empty="None.", command=command))
    return blocks


def _row(row: ProposalRow) -> panels.Row:
    lasts = "for all" if row.published else "for a time" if row.persistent else "in its session"
    told = (f"{row.method} {row.path}", row.agent_id[:12], *map(panels.written, (row.created, row.expires)), lasts)
    actions = (panels.SHOW, *_OFFERED.get(row.state, ()))
    return panels.row(row.proposal_id, *told, row.decided_by, actions=actions, state=row.state)


async def show_one(request: panels.PanelRequest) -> list[panels.Block] | None:
    """Show a proposal: its evaluations, the plan as a drawing, and the contract."""
    row: ProposalRow | None = await request.store.read(kept.ReadProposal(kept.proposal_id_of(request.key)))
    if row is None:
        return None
    command = panels.shell("proposals", "show", row.proposal_id)
    document = msgspec.json.decode(row.document)
    refusal = document.get("refusal", {})
    stored = read_endpoint(row.document, row.proposal_id)[0] if "recipe" in document else None
    blocks: list[panels.Block] = [
        panels.facts(
            f"{row.method} {row.path}"[:120],
            command,
            state=row.state,
            proposal=row.proposal_id,
            synthesis=None if stored is None else row.synthesis_id,
            agent=row.agent_id,
            session=row.session_id or None,
            created=panels.written(row.created),
            expires=panels.written(row.expires),
            published=True if row.published else None,
            decided_by=row.decided_by,
            reason=row.reason or refusal.get("explanation"),
        ),
        panels.Table("Evaluations", ("Evaluation", "Asks"), list(_evaluations(row, refusal)), command=command),
        panels.Table("This proposal", _COLUMNS, [_row(row)], _ACTIONS, command=command),
    ]
    if stored is not None:
        assert stored.recipe is not None, "every synthesis has its recipe"
        blocks.insert(2, _draw(stored.recipe, f"{row.method} {row.path}", command))
        blocks.append(panels.text("Plan in words", "\n".join(stored.explanation), command))
        blocks.append(panels.json_text("Contract", project_endpoint(stored.endpoint), command))
    elif refusal:
        blocks.append(panels.json_text("Refusal", refusal, command))
    return blocks


def _evaluations(row: ProposalRow, refusal: dict[str, Any]) -> Iterator[panels.Row]:
    """Yield the seven evaluations. A proposal that fails one of the first five is answered and not kept."""
    capability, policy = _PASSED, _PASSED
    if row.state == kept.PENDING:
        policy = _WAITING
    elif refusal:
        failed = refusal.get("reason") == POLICY
        # The policy is asked for the endpoint before a plan is searched: a refusal by it tells nothing of the search.
        capability, policy = (_OPEN, _REFUSED) if failed else (_REFUSED, _OPEN)
    elif row.state == kept.REJECTED:
        policy = _REFUSED
    verdicts = (*[_PASSED] * 5, capability, policy)
    for number, ((name, asks), verdict) in enumerate(zip(_EVALUATIONS, verdicts, strict=True), 1):
        yield panels.Row(str(number), [f"{number}. {name}", asks], state=verdict)


def _draw(recipe: Recipe, proposed: str, command: str) -> panels.Graph:
    """Draw a plan: where the input of each step comes from. Steps that use no other come after the proposal."""
    nodes = [panels.Node("0", cells(proposed)[0], "proposed")]
    edges: list[tuple[str, ...]] = []
    names: dict[str, str] = {}
    for number, step in enumerate(recipe.steps, 1):
        node = str(number)
        nodes.append(panels.Node(node, cells(f"{step.method} {step.path or '/'}")[0], "each" if step.for_each else ""))
        sources = [*step.input.items(), *([("each", step.for_each)] if step.for_each is not None else [])]
        found: dict[str, list[str]] = {}
        for target, source in sources:
            before = names.get(str(source.value).partition(".")[0]) if source.kind == "previous_step" else "0"
            found.setdefault(before or "0", []).append(target)
        edges += [(before, node, cells(", ".join(targets))[0]) for before, targets in found.items()] or [("0", node)]
        if step.output is not None:
            names[step.output] = node
    return panels.Graph("Plan", nodes, edges, command)


def _decide(
    verb: str, decision: Callable[[panels.Deed, str], Any]
) -> Callable[[panels.Deed], Awaitable[Refused | None]]:
    async def decide(deed: panels.Deed) -> Refused | None:
        proposal_id = kept.proposal_id_of(deed.key)
        row: ProposalRow | None = await deed.store.read(kept.ReadProposal(proposal_id))
        if row is None:
            return panels.not_found("proposal", deed.key)
        if row.agent_id.casefold() in deed.by.parties:
            message = f"{proposal_id} must be decided by someone else: {deed.by.name[:64]} has proposed it."
            return Refused(status.FORBIDDEN, "own-proposal", message)
        details = {"proposal_id": proposal_id, "decided_by": deed.by.written, "reason": deed.reason}
        done = await deed.carry_out(verb, "/proposals/{proposal_id}", details, decision(deed, proposal_id))
        if not isinstance(done, Conflict):
            return None
        state, by = done.details.get("state"), done.details.get("decided_by") or "the server"
        return panels.conflicting(kept.REFUSALS[done.reason].format(proposal_id, state=state, by=by) + ".", done.reason)

    return decide


def _deciding(state: str) -> Callable[[panels.Deed, str], Any]:
    return lambda deed, proposal_id: kept.DecideProposal(proposal_id, state, deed.by.written, deed.reason)


approve = _decide("APPROVE", _deciding(kept.APPROVED))
reject = _decide("REJECT", _deciding(kept.REJECTED))
revoke = _decide("REVOKE", lambda deed, key: kept.RevokeSynthesis(key, deed.by.written, deed.reason))
