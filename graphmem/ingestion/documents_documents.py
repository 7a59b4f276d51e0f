"""Documents as text with the places that it stands at, in parts that memories are extracted from."""
