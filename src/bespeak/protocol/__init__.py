"""AGTP without sockets: bytes, messages, status codes. Every package may import it; it imports none of ours."""
