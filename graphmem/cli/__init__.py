"""The command line `graphmem`."""

import sys


def main() -> None:
    """Run the command line and exit with 0 (done), 1 (failed) or 2 (wrong use)."""
    # A coding agent waits for its hooks at every prompt: build no other commands for them.
    if sys.argv[1:3] == ["hooks", "run"]:
        from graphmem.cli.hooks import app as hooks

        hooks(args=sys.argv[2:], prog_name="graphmem hooks")
    from graphmem.cli.families import add_named, make_root

    root = make_root()
    add_named(root, sys.argv[1:])
    root(prog_name="graphmem")


__all__ = ["main"]
