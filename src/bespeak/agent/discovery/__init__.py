"""Discovery of services on the web by the rules for agents."""
