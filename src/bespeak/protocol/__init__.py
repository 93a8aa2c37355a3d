"""AGTP itself: bytes, messages, status codes, addresses. Every package may import it; it imports none of ours."""
