"""The model every other package talks about."""
