"""What a service on the web says of itself, found and read by the rules for agents."""
