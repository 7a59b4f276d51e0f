"""The command line `graphmem`."""


def main() -> None:
    """Run the command line and exit with 0 (done), 1 (failed) or 2 (wrong use)."""
    from graphmem.cli.app import app

    app(prog_name="graphmem")


__all__ = ["main"]
