"""Arguments: from an instruction and an endpoint to schema-valid values, without a language model."""

from bespeak.agent.arguments.conversion import find_faults
from bespeak.agent.arguments.finding import Argument, Arguments, find_arguments, nest

__all__ = ["Argument", "Arguments", "find_arguments", "find_faults", "nest"]
