"""Capabilities around the kernel, one folder each. Only app may import it; an extension knows few others."""
