"""Importer of MCP servers: their tools become endpoints (AGIS C.3)."""
