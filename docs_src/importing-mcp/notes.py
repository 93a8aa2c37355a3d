from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("Acme Notes", version="1.4")
notes = {"1": "Water the plants"}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_notes() -> dict[str, str]:
    """List all notes with their ids."""
    return notes


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def delete_note(note_id: str) -> dict[str, bool]:
    """Delete a note."""
    return {"deleted": notes.pop(note_id, None) is not None}


server.run()
