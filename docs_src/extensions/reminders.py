import secrets

import click
import msgspec

from bespeak import App
from bespeak import extension as ext


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    longest: float = 3600.0


REMIND = ext.StandardMethod(
    name="REMIND",
    category="transact",
    description="Reminds the caller of something.",
    intent="Be reminded of something later.",
    outcome="The reminder is stored, and shown when it is due.",
    impact="reversible",
    idempotent=False,
    takes={"text": ext.LINE, "seconds": {"type": "number", "minimum": 0}},
    returns={"reminder_id": ext.NAME},
)


def remind(call):
    longest, seconds = call.server.part("reminders").longest, call.input["seconds"]
    if seconds > longest:
        return ext.Refused(422, "too-late", f"`seconds` must be 0 to {longest:g}; got {seconds:g}.")
    put = ext.PutRecord(
        f"rem-{secrets.token_hex(8)}", "reminder", call.agent_id or "", "waiting", call.input["text"], delay=seconds
    )
    return ext.Effects((put,), lambda _: ext.Envelope({"reminder_id": put.record_id}))


def show_due(server):
    async def show(records):
        for record in records:
            print("REMINDER:", record.data, flush=True)
            done = ext.ChangeRecord(record.record_id, ("reminder",), ("waiting",), "shown", lifetime=60.0)
            await server.store.do(done)

    return show


@click.command("list")
@click.option("--store", help="A file, or postgresql://...")
@click.pass_obj
def list_reminders(target, store):
    """List the reminders in the store."""
    for record in ext.visit_store(target, store, lambda opened: opened.read(ext.ListRecords("reminder"))):
        click.echo(f"{record.state}  {record.data}")


reminders = ext.Extension(
    name="reminders",
    settings=Settings,
    own_methods=[(REMIND, remind)],
    kinds={"reminder": ext.RecordKind(due=show_due, cancelling=ext.Cancelling(("waiting",)))},
    commands=[list_reminders],
)
app = App(
    "Desk",
    server_id="desk.acme.example",
    operator="Acme",
    contact="ops@acme.example",
    methods=["CANCEL", "CHECK"],
    extensions=[reminders],
)
