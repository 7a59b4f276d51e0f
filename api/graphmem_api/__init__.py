"""graphmem's HTTP API: thin routes over the services."""
