"""Handlers of the standard methods of the category ORCHESTRATE."""
