"""`graphmem doctor`: every part looked at, with what is wrong and how to mend it."""

from __future__ import annotations

import typer

from graphmem.cli.command import Output, command, read_settings

app = typer.Typer()


@command(app, "doctor")
async def doctor(output: Output) -> None:
    """Check every part, say what is wrong and how to mend it; ends with 1 when something needed is broken."""
    from graphmem.cli import render
    from graphmem.cli.checks import CheckStatus, run_checks

    checks = [check async for check in run_checks(read_settings())]
    broken = [check for check in checks if check.verdict is CheckStatus.BROKEN]
    summary = f"{len(broken)} of {len(checks)} parts need mending." if broken else "Everything needed works."
    output.show({"ok": not broken, "checks": checks}, render.checks(checks), summary)
    if broken:
        raise typer.Exit(1)
