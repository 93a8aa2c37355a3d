"""How peers reach the runtime: connections, AGTP, HTTP. Only app may import it."""
