"""How the handler of an endpoint is called."""
