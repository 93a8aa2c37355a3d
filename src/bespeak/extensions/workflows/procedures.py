"""Procedures that agents register: chains of calls, approved by somebody else before RUN (Tier 2 10.4).

Code is never accepted here. Whoever approves a program installs it as a procedure of the operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows.spec import StepSpec
from bespeak.extensions.workflows.start import check_steps, find_uncallable, read_steps
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import METHOD, Registered, path_of
from bespeak.runtime.call import Call, RoutedCall, parties_of
from bespeak.runtime.extension import ANNOUNCE
from bespeak.runtime.handling import RefusedError, effects, new_id, refusal, to_json
from bespeak.state.store.commands.cases import ACCEPTED, ESCALATION, REJECTED, Case, OpenCase, ReadCase
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.store import Store

PROCEDURE: Final = "procedure"  # kind of the records, and entity type of REGISTER
HELD: Final = "held"
RELEASED: Final = "released"  # by VALIDATE; an accepted case releases one in state held
MOST: Final = 1000  # procedures of one agent
LONGEST: Final = 300.0  # seconds that a procedure of an agent may take
_REGISTER: Final = STANDARD["REGISTER"]
_RUN: Final = STANDARD["RUN"]
_MEMBERS: Final = frozenset({"steps", "input", "description", "output"})


class ProposedProcedure(msgspec.Struct, frozen=True):
    """Content of the record. It never changes, so that what was approved is what runs."""

    steps: tuple[StepSpec, ...]
    input: dict[str, Any]  # JSON Schema of the input
    description: str
    case_id: str
    output: Any = None  # shape of its output


_decode = msgspec.json.Decoder(ProposedProcedure).decode


def procedure_of(record: Record) -> ProposedProcedure:
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


async def register_procedure(call: RoutedCall, most_data: int) -> Effects:
    """Answer REGISTER of a procedure: it is kept, and a case asks for its review."""
    data = call.input["data"]
    if not isinstance(data, Mapping) or not data.keys() <= _MEMBERS or not isinstance(data.get("description", ""), str):
        message = "The data of a procedure have `steps` as CHAIN takes them, and perhaps `input`, a JSON Schema, "
        raise _invalid(message + "`output` and `description`; code and commands are not accepted.")
    steps = read_steps(data.get("steps"))
    if isinstance(steps, Fault):
        raise _invalid(f"The steps are not valid: {steps.message}")
    schema = data.get("input", {"type": "object"})
    if not isinstance(schema, Mapping) or isinstance(compile_schema(schema), Fault):
        raise _invalid("`input` is not a valid JSON Schema.")
    shape = data.get("output")
    fault = find_uncallable(call, steps) or await check_steps(
        call, steps, propagates=True, has_input=True, result=shape
    )
    if fault is not None:
        raise _invalid(fault.message)
    proposed = ProposedProcedure(steps, dict(schema), data.get("description", ""), new_id("esc"), shape)
    return _keep(call, proposed, most_data)


def _keep(call: RoutedCall, proposed: ProposedProcedure, most_data: int) -> Effects:
    owner, procedure_id, case_id = call.agent_id or "", new_id("proc"), proposed.case_id
    text = to_json(proposed)
    if len(text) > most_data:
        raise _invalid(f"A procedure may have {most_data // 1024} KiB; this one has {len(text)} bytes.")
    subject = {
        "procedure_id": procedure_id,
        "reason": "procedure_review",
        "description": proposed.description,
        "steps": proposed.steps,
        "input": proposed.input,
        **({} if proposed.output is None else {"output": proposed.output}),
    }
    told, recipient, announce = to_json(subject), call.server.cases.default_recipient, call.server.hooks[ANNOUNCE]
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
    full = "The agent has {} procedures or open cases, the maximum."
    return effects(
        commands,
        lambda results: {
            "entity_id": procedure_id,
            "entity_type": PROCEDURE,
            "owner": owner,
            "version": results[0].version,
            "created_at": write_instant(results[0].created),
            "status": HELD,
            "escalation_id": case_id,
        },
        {"": lambda found: _REGISTER.refuse("too-many-entities", full.format(found["most"]))},
    )


def _invalid(message: str) -> RefusedError:
    return refusal(_REGISTER, "invalid-data", message, field="/data")


class ProcedurePlan(msgspec.Struct, frozen=True):
    steps: tuple[StepSpec, ...]
    input: Validator
    timeout: float
    result: Any = None  # shape of its output


async def find_procedure(call: RoutedCall, procedure_id: str) -> ProcedurePlan:
    """Find a procedure of the operator, or one of the caller's own that has been released."""
    registered: Registered | None = call.server.registrar.procedures.get(procedure_id)
    if registered is not None:
        procedure = registered.procedure
        missing = call.principal.scopes.missing(procedure.scopes)
        if missing:
            message = f"The procedure needs the scopes {', '.join(missing)}, beside those of RUN."
            required: dict[str, Any] = {"missing_scopes": missing, "required_scopes": list(procedure.scopes)}
            raise refusal(status.SCOPE_VIOLATION, "scope-violation", message, **required)
        steps = tuple(msgspec.convert(one, StepSpec) for one in procedure.steps)
        steps = steps or (StepSpec(METHOD, path_of(procedure_id), procedure=procedure_id),)
        return await _checked(call, ProcedurePlan(steps, registered.input, procedure.timeout, procedure.output))
    assert call.server.store is not None, "RUN needs a store"
    own = await find_own_procedure(call, procedure_id)
    if own is None:
        message = f"No procedure is registered under {procedure_id[:80]!r}; commands and code are never run."
        functions, held = call.server.part("workflows").functions, call.principal.scopes
        known = sorted(name for name, one in functions.items() if not held.missing(one.participant.scopes))
        message += f" Workflows: {', '.join(known)}." if known else ""
        raise refusal(_RUN, "procedure-not-found", message)
    record, proposed = own
    obstacle = await find_obstacle(call.server.store, record, proposed)
    if obstacle is not None:
        raise refusal(_RUN, "procedure-refused", obstacle, escalation_id=proposed.case_id)
    taken = compile_schema(proposed.input)
    assert isinstance(taken, Validator), "it was checked when it was registered"
    return await _checked(call, ProcedurePlan(proposed.steps, taken, LONGEST, proposed.output))


async def find_own_procedure(call: Call, procedure_id: str) -> tuple[Record, ProposedProcedure] | None:
    record: Record | None = None
    if call.server.store is not None and procedure_id.startswith("proc-"):
        record = await call.server.store.read(FindRecord((PROCEDURE,), procedure_id))
    return None if record is None or record.owner != call.agent_id else (record, procedure_of(record))


async def _checked(call: RoutedCall, plan: ProcedurePlan) -> ProcedurePlan:
    """Refuse a procedure whose steps cannot run here and now, or would run others in turn."""
    called = tuple(step for step in plan.steps if step.procedure is None)
    wrong = find_uncallable(call, called) or await check_steps(
        call, called, propagates=True, has_input=True, result=plan.result
    )
    if wrong is not None:
        raise refusal(_RUN, "procedure-refused", f"The procedure cannot run. {wrong.message}")
    return plan
