"""The verbs of graphmem, a file for each family."""
