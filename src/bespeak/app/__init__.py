"""Where everything meets: authoring, assembly, serving, command line. No room may import it."""
