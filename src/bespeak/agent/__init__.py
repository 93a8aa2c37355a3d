"""Agent side: discover, connect, call, act on an instruction. Only app may import it."""
