"""Expressions of agents in CEL, evaluated in a process of their own with limits."""
