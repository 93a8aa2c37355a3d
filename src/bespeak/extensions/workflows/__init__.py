"""Workflows: calls that are carried out one after the other or together, and that survive a restart."""
