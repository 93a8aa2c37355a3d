"""The /.well-known/ai document and its notations for parameters and results."""
