from dataclasses import dataclass

from bespeak import App, Context, EntityChange, Refusal

app = App(
    "Acme Staff",
    server_id="staff.acme.example",
    operator="Acme",
    contact="ops@acme.example",
    methods=["TRANSFER", "CANCEL"],
)
DESK = "0b4e" * 16


@dataclass
class Employee:
    name: str
    team: str = "sales"


@app.entity("employee", model=Employee)
async def employee_changed(change: EntityChange[Employee], context: Context) -> None:
    """Tell the front desk who comes and goes.

    Errors:
        team_closed: The team takes nobody.
    """
    if change.data.team == "closed":
        raise Refusal("team_closed", "The team takes nobody.")
    context.notify(DESK, {"change": change.action, "name": change.data.name})
