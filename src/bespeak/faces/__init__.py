"""Network interfaces of the runtime: connections, AGTP, HTTP. Only app may import this package."""
