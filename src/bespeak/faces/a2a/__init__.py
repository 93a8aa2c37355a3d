"""Endpoints as skills of an A2A agent: messages that call them, and tasks that tell what became of a call."""
