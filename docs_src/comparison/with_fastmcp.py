from datetime import date

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_access_token

mcp = FastMCP("Clinic")
FREE = {date(2030, 5, 6): ["09:00", "09:30"], date(2030, 5, 7): ["14:00"]}


@mcp.tool(annotations={"readOnlyHint": True})
def find_slots(day: date) -> list[str]:
    """Find the free slots of a day."""
    return FREE.get(day, [])


@mcp.tool(annotations={"destructiveHint": True, "idempotentHint": False})
def book_slot(day: date, time: str, patient: str) -> str:
    """Book a free slot for a patient, who is told by text message. This cannot be undone."""
    token = get_access_token()
    if token is None or "slots:book" not in token.scopes:
        raise ToolError("needs the scope slots:book")
    if time not in FREE.get(day, []):
        raise ToolError(f"{day} {time} is not free.")
    FREE[day].remove(time)
    return f"{day} {time} for {patient}"
