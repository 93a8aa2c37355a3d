"""Agent side: discover, connect, call. Only app may import it."""
