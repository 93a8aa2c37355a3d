"""The ai document of /.well-known/ai and its notations for parameters and results."""
