"""Agents and keys as documents: Agent Documents, Agent Genesis, keys and their history."""
