"""The composition root: the only place where everything meets."""
