"""Network interfaces of the runtime: connections, AGTP, HTTP, MCP, A2A. Only app may import this package."""
