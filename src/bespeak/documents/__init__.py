"""Files to model and back; every reader returns (model, diagnostics)."""
