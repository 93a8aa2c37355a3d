"""Network interfaces of the runtime: connections, AGTP, HTTP, MCP, A2A, the console. Only app may import it."""
