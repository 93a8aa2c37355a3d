import secrets
from collections.abc import Sequence

import msgspec

from bespeak import App, Policies
from bespeak.extension import (
    LINE,
    NAME,
    Cancelling,
    ChangeRecord,
    Effects,
    Envelope,
    Extension,
    Opening,
    PutRecord,
    Record,
    RecordKind,
    Refused,
    RoutedCall,
    StandardMethod,
)  # fmt: skip


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    longest: float = 3600.0


REMIND = StandardMethod(
    name="REMIND",
    category="transact",
    description="Reminds the caller of something.",
    intent="Be reminded of something later.",
    outcome="The reminder is stored, and shown when it is due.",
    impact="reversible",
    idempotent=False,
    parameters={"text": LINE, "seconds": {"type": "number", "minimum": 0}},
    required=("text", "seconds"),
    result={"reminder_id": NAME},
    returned=("reminder_id",),
)


def remind(call: RoutedCall) -> Effects | Refused:
    longest = call.server.part("reminders").longest
    if call.input["seconds"] > longest:
        return Refused(422, "too-late", f"`seconds` must be 0 to {longest:g}; got {call.input['seconds']:g}.")
    reminder_id = f"rem-{secrets.token_hex(8)}"
    owner, text = call.agent_id or "", call.input["text"]
    put = PutRecord(reminder_id, "reminder", owner, "waiting", text, delay=call.input["seconds"])
    return Effects((put,), lambda _: Envelope({"reminder_id": reminder_id}))


def open_reminders(opening: Opening) -> None:
    opening.provide("reminders", opening.settings)


def carry_out(server):
    async def show(records: Sequence[Record]) -> None:
        for record in records:
            print("REMINDER:", record.data, flush=True)
            await server.store.do(ChangeRecord(record.record_id, ("reminder",), ("waiting",), "shown", lifetime=60.0))

    return show


reminders = Extension(
    name="reminders",
    settings=Settings,
    own_methods=[(REMIND, remind)],
    kinds={"reminder": RecordKind(due=carry_out, cancelling=Cancelling(("waiting",)))},
    open=open_reminders,
)
app = App(
    "Desk",
    server_id="desk.acme.example",
    operator="Acme",
    contact="ops@acme.example",
    policies=Policies(scope_required_for_invocation=False),
    methods=["CANCEL", "CHECK"],
    extensions=[reminders],
)
