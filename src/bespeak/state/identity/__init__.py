"""Caller identity: agents, keys and credentials as documents, and verified agents with their authority."""
