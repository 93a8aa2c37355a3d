"""MCP: the endpoints of a service as tools, over stdio and HTTP."""
