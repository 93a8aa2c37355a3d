"""Routing: which of several handlers takes a work item."""
