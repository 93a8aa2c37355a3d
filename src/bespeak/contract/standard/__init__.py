"""The standard methods of AGTP as data: what each is for, its parameters, results, errors and scopes."""
