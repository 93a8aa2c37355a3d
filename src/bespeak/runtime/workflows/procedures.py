"""Procedures that agents register: chains of calls, approved by somebody else before RUN (Tier 2 10.4).

Code is never accepted here. Whoever approves a program installs it as a procedure of the operator.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.procedure import METHOD, STEPS, Registered, path_of
from bespeak.runtime.call import RoutedCall, parties_of
from bespeak.runtime.messages.message import announce
from bespeak.runtime.workflows.spec import StepSpec
from bespeak.runtime.workflows.start import check_steps, find_uncallable
from bespeak.state.store.commands.cases import ACCEPTED, ESCALATION, REJECTED, Case, OpenCase, ReadCase
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.store import Conflict, Store

PROCEDURE: Final = "procedure"
"""Kind of the records, and entity type of REGISTER."""
HELD: Final = "held"
RELEASED: Final = "released"
"""State of a procedure that VALIDATE has released; an accepted case releases one in state held."""
MOST: Final = 1000
"""Procedures of one agent."""
LONGEST: Final = 300.0
"""Seconds that a procedure of an agent may take."""
_REGISTER: Final = STANDARD["REGISTER"]
_RUN: Final = STANDARD["RUN"]
_MEMBERS: Final = frozenset({"steps", "input", "description"})


class ProposedProcedure(msgspec.Struct, frozen=True):
    """Content of the record. It never changes, so that what was approved is what runs."""

    steps: tuple[StepSpec, ...]
    input: dict[str, Any]
    """JSON Schema of the input."""
    description: str
    case_id: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ProposedProcedure).decode


def procedure_of(record: Record) -> ProposedProcedure:
    """Read the content of a record."""
    return _decode(record.data)


def release(procedure_id: str) -> ChangeRecord:
    """Return the command by which a validation releases a procedure in place of an approval."""
    return ChangeRecord(procedure_id, (PROCEDURE,), (HELD,), RELEASED)


async def find_obstacle(store: Store, record: Record, procedure: ProposedProcedure) -> str | None:
    """Return why a procedure must not run yet; None if it has been approved."""
    if record.state == RELEASED:
        return None
    case: Case | None = await store.read(ReadCase(procedure.case_id))
    if case is not None and case.state == ACCEPTED:
        return None
    if case is not None and case.state == REJECTED:
        return "The procedure was rejected; register another one."
    return f"The procedure waits for a review: somebody else must accept {procedure.case_id}."


async def register_procedure(call: RoutedCall, most_data: int) -> Effects | Refused:
    """Answer REGISTER of a procedure: it is kept, and a case asks for its review."""
    data = call.input["data"]
    if not isinstance(data, Mapping) or not data.keys() <= _MEMBERS or not isinstance(data.get("description", ""), str):
        message = "The data of a procedure have `steps` as CHAIN takes them, and perhaps `input`, a JSON Schema, and "
        return _invalid(message + "`description`; code and commands are not accepted.")
    wrong = _violations(data.get("steps"))
    if wrong is not None:
        return _invalid(f"The steps are not valid: {wrong}.")
    schema = data.get("input", {"type": "object"})
    if not isinstance(schema, Mapping) or isinstance(compile_schema(schema), Fault):
        return _invalid("`input` is not a valid JSON Schema.")
    steps = tuple(msgspec.convert(one, StepSpec) for one in data["steps"])
    uncallable = find_uncallable(call, steps)
    fault = uncallable or await check_steps(call, steps, propagates=True, has_input=True)
    if fault is not None:
        return fault if isinstance(fault, Refused) else _invalid(fault.message)
    return _keep(call, steps, dict(schema), data.get("description", ""), most_data)


def _keep(
    call: RoutedCall, steps: tuple[StepSpec, ...], schema: dict[str, Any], description: str, most_data: int
) -> Effects | Refused:
    owner, procedure_id, case_id = call.agent_id or "", f"proc-{secrets.token_hex(16)}", f"esc-{secrets.token_hex(16)}"
    text = _encode(ProposedProcedure(steps, schema, description, case_id)).decode()
    if len(text) > most_data:
        return _invalid(f"A procedure may have {most_data // 1024} KiB; this one has {len(text)} bytes.")
    subject = {
        "procedure_id": procedure_id,
        "reason": "procedure_review",
        "description": description,
        "steps": steps,
        "input": schema,
    }
    told, recipient = _encode(subject).decode(), call.server.cases.default_recipient
    commands = (
        PutRecord(procedure_id, PROCEDURE, owner, HELD, text, most=MOST),
        OpenCase(
            case_id=case_id,
            kind=ESCALATION,
            agent_id=owner,
            recipient=recipient,
            digest=hashlib.sha256(told.encode()).hexdigest(),
            subject=told,
            announcement=announce(call.server, case_id, owner, recipient, msgspec.Raw(told.encode())),
            parties=parties_of(call),
            most_open=call.server.cases.most_open,
        ),
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            message = f"The agent has {results.details['most']} procedures or open cases, the maximum."
            return _REGISTER.refuse("too-many-entities", message)
        record: Record = results[0]
        return Envelope(
            {
                "entity_id": procedure_id,
                "entity_type": PROCEDURE,
                "owner": owner,
                "version": record.version,
                "created_at": write_instant(record.created),
                "status": HELD,
                "escalation_id": case_id,
            }
        )

    return Effects(commands, tell)


def _violations(steps: Any) -> str | None:
    validator = compile_schema(STEPS)
    assert isinstance(validator, Validator)
    found = validator.violations(steps)
    return found[0].message if found else None


def _invalid(message: str) -> Refused:
    return _REGISTER.refuse("invalid-data", message, field="/data")


class ProcedurePlan(msgspec.Struct, frozen=True):
    """What a run of a procedure does."""

    steps: tuple[StepSpec, ...]
    input: Validator
    timeout: float


async def find_procedure(call: RoutedCall, procedure_id: str) -> ProcedurePlan | Refused:
    """Find a procedure of the operator, or one of the caller's own that has been released."""
    registered: Registered | None = call.server.registrar.procedures.get(procedure_id)
    if registered is not None:
        procedure = registered.procedure
        missing = call.principal.scopes.missing(procedure.scopes)
        if missing:
            message = f"The procedure needs the scopes {', '.join(missing)}, beside those of RUN."
            required = {"missing_scopes": missing, "required_scopes": list(procedure.scopes)}
            return Refused(status.SCOPE_VIOLATION, "scope-violation", message, required)
        steps = tuple(msgspec.convert(one, StepSpec) for one in procedure.steps)
        steps = steps or (StepSpec(METHOD, path_of(procedure_id), procedure=procedure_id),)
        return await _checked(call, ProcedurePlan(steps, registered.input, procedure.timeout))
    assert call.server.store is not None, "RUN needs a store"
    record: Record | None = None
    if procedure_id.startswith("proc-"):
        record = await call.server.store.read(FindRecord((PROCEDURE,), procedure_id))
    if record is None or record.owner != call.agent_id:
        message = f"No procedure is registered under {procedure_id[:80]!r}; commands and code are never run."
        return _RUN.refuse("procedure-not-found", message)
    proposed: ProposedProcedure = procedure_of(record)
    obstacle = await find_obstacle(call.server.store, record, proposed)
    if obstacle is not None:
        return _RUN.refuse("procedure-refused", obstacle, escalation_id=proposed.case_id)
    taken = compile_schema(proposed.input)
    assert isinstance(taken, Validator), "it was checked when it was registered"
    return await _checked(call, ProcedurePlan(proposed.steps, taken, LONGEST))


async def _checked(call: RoutedCall, plan: ProcedurePlan) -> ProcedurePlan | Refused:
    """Refuse a procedure whose steps cannot run here and now, or would run others in turn."""
    called = tuple(step for step in plan.steps if step.procedure is None)
    wrong = find_uncallable(call, called)
    if wrong is not None:
        return _RUN.refuse("procedure-refused", f"The procedure cannot run. {wrong.message}")
    fault = await check_steps(call, called, propagates=True, has_input=True)
    if isinstance(fault, Fault):
        return _RUN.refuse("procedure-refused", f"The procedure cannot run. {fault.message}")
    return plan if fault is None else fault
