"""The planner: composing a proposed endpoint of existing ones, by search (AGTP-API 10, 12.1)."""
