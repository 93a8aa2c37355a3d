"""Configuration files of MCP clients: where they are, and an entry in them for a server."""
