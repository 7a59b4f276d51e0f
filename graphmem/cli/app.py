"""The command `graphmem` with all its subcommands, which import their dependencies when they run."""

from graphmem.cli.families import add_all, make_root

app = make_root()
add_all(app)
