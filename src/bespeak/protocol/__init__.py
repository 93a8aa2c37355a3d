"""AGTP without sockets: bytes, messages, status codes. Every room may import it; it imports none."""
