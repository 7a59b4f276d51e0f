"""The operations of graphmem, a module for each family."""
