"""Procedures that agents register: chains of calls, approved by somebody else before RUN (Tier 2 10.4).

Code is never accepted here. Whoever approves a program installs it as a procedure of the operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows.journal import open_case
from bespeak.extensions.workflows.spec import StepSpec
from bespeak.extensions.workflows.start import check_scopes, check_steps, find_uncallable, read_steps
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import METHOD, Registered, path_of
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.handling import Conflicts, RefusedError, effects, new_id, refusal, to_json
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, Case, ReadCase
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record

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


def release(procedure_id: str) -> ChangeRecord:
    """Return the command by which a validation releases a procedure in place of an approval."""
    return ChangeRecord(procedure_id, (PROCEDURE,), (HELD,), RELEASED)


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
    fault = await _find_fault(call, steps, shape)
    if fault is not None:
        raise _invalid(fault)
    owner, procedure_id, case_id = call.agent_id or "", new_id("proc"), new_id("esc")
    proposed = ProposedProcedure(steps, dict(schema), data.get("description", ""), case_id, shape)
    text = to_json(proposed)
    if len(text) > most_data:
        raise _invalid(f"A procedure may have {most_data // 1024} KiB; this one has {len(text)} bytes.")
    subject: dict[str, Any] = {"procedure_id": procedure_id, "reason": "procedure_review"}
    subject |= {"description": proposed.description, "steps": steps, "input": proposed.input}
    subject |= {} if shape is None else {"output": shape}
    digest = hashlib.sha256(to_json(subject).encode()).hexdigest()
    commands = (
        PutRecord(procedure_id, PROCEDURE, owner, HELD, text, most=MOST),
        open_case(call, case_id, owner, digest, subject, most_open=call.server.cases.most_open),
    )
    made = {"entity_id": procedure_id, "entity_type": PROCEDURE, "owner": owner, "status": HELD}

    def tell(results: Sequence[Any]) -> dict[str, Any]:
        kept: Record = results[0]
        return {**made, "version": kept.version, "created_at": write_instant(kept.created), "escalation_id": case_id}

    full = "The agent has {} procedures or open cases, the maximum."
    refuse: Conflicts = {"": lambda found: _REGISTER.refuse("too-many-entities", full.format(found["most"]))}
    return effects(commands, tell, refuse)


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
        check_scopes(call, "procedure", procedure.scopes)
        steps = tuple(msgspec.convert(one, StepSpec) for one in procedure.steps)
        steps = steps or (StepSpec(METHOD, path_of(procedure_id), procedure=procedure_id),)
        return await _checked(call, ProcedurePlan(steps, registered.input, procedure.timeout, procedure.output))
    own = await find_own_procedure(call, procedure_id)
    if own is None:
        message = f"No procedure is registered under {procedure_id[:80]!r}; commands and code are never run."
        functions, held = call.server.part("workflows").functions, call.principal.scopes
        known = sorted(name for name, one in functions.items() if not held.missing(one.participant.scopes))
        message += f" Workflows: {', '.join(known)}." if known else ""
        raise refusal(_RUN, "procedure-not-found", message)
    state, proposed = own
    case: Case | None = None if state == RELEASED else await call.store.read(ReadCase(proposed.case_id))
    if state != RELEASED and (case is None or case.state != ACCEPTED):
        obstacle = f"The procedure waits for a review: somebody else must accept {proposed.case_id}."
        if case is not None and case.state == REJECTED:
            obstacle = "The procedure was rejected; register another one."
        raise refusal(_RUN, "procedure-refused", obstacle, escalation_id=proposed.case_id)
    taken = compile_schema(proposed.input)
    assert isinstance(taken, Validator), "it was checked when it was registered"
    return await _checked(call, ProcedurePlan(proposed.steps, taken, LONGEST, proposed.output))


async def find_own_procedure(call: Call, procedure_id: str) -> tuple[str, ProposedProcedure] | None:
    """Return the state and the content of a procedure of the caller."""
    record: Record | None = None
    if call.server.store is not None and procedure_id.startswith("proc-"):
        record = await call.server.store.read(FindRecord((PROCEDURE,), procedure_id))
    return None if record is None or record.owner != call.agent_id else (record.state, _decode(record.data))


async def _checked(call: RoutedCall, plan: ProcedurePlan) -> ProcedurePlan:
    """Refuse a procedure whose steps cannot run here and now, or would run others in turn."""
    wrong = await _find_fault(call, tuple(step for step in plan.steps if step.procedure is None), plan.result)
    if wrong is not None:
        raise refusal(_RUN, "procedure-refused", f"The procedure cannot run. {wrong}")
    return plan


async def _find_fault(call: RoutedCall, steps: tuple[StepSpec, ...], shape: Any) -> str | None:
    found = find_uncallable(call, steps) or await check_steps(
        call, steps, propagates=True, has_input=True, result=shape
    )
    return None if found is None else found.message
