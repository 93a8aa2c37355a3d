"""Network interfaces of the runtime: connections, AGTP, HTTP, MCP. Only app may import this package."""
