"""Who calls: credentials to a proven agent and its authority."""
