"""The HTTP API of graphmem: thin routes over the memory service."""
