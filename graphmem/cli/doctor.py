"""`graphmem doctor`: checks the installation and the stored data, and shows how to fix problems."""

from __future__ import annotations

from typing import Annotated

import typer

from graphmem.cli.command import EXIT_FAILED, Output, command, read_settings

app = typer.Typer()


@command(app, "doctor")
async def doctor(
    output: Output,
    deep: Annotated[bool, typer.Option("--deep", help="Also check the invariants of all stored data.")] = False,
    tenant: Annotated[str | None, typer.Option(help="With --deep: report the data of one tenant only.")] = None,
) -> None:
    """Check every dependency and show how to fix it; exit with 1 if a required one is broken."""
    from graphmem.cli import views
    from graphmem.cli.doctor_checks import CheckStatus, check_data, run_checks

    settings = read_settings()
    checks = [check async for check in run_checks(settings)]
    if deep:
        checks += [check async for check in check_data(settings, tenant)]
    broken = [check for check in checks if check.verdict is CheckStatus.BROKEN]
    summary = f"{len(broken)} of {len(checks)} checks failed." if broken else "Everything that is required works."
    output.show({"ok": not broken, "checks": checks}, *views.checks(checks), summary)
    if broken:
        raise typer.Exit(EXIT_FAILED)
