"""`graphmem doctor`: checks the installation and says how to fix it."""

from __future__ import annotations

import typer

from graphmem.cli.command import EXIT_FAILED, Output, command, read_settings

app = typer.Typer()


@command(app, "doctor")
async def doctor(output: Output) -> None:
    """Check every dependency and show how to fix it; exits with 1 when a required one is broken."""
    from graphmem.cli import render
    from graphmem.cli.doctor_checks import CheckStatus, run_checks

    checks = [check async for check in run_checks(read_settings())]
    broken = [check for check in checks if check.verdict is CheckStatus.BROKEN]
    summary = f"{len(broken)} of {len(checks)} checks failed." if broken else "Everything that is required works."
    output.show({"ok": not broken, "checks": checks}, render.checks(checks), summary)
    if broken:
        raise typer.Exit(EXIT_FAILED)
