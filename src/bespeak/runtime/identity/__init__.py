"""Callers: agents, principals, authority, grants and what a caller may be shown."""
