"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil


def describe_machine(load_before: tuple[float, float, float]) -> str:
    """Return a sentence on the machine and its load averages, those before the run and those now."""
    before, now = (" / ".join(f"{value:.1f}" for value in load) for load in (load_before, os.getloadavg()))
    return (
        f"Run on {os.cpu_count()} cores ({_processor()}) with {psutil.virtual_memory().total / 1e9:.0f} GB of memory, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; load averages of 1, 5 and 15 "
        f"minutes {before} before and {now} after."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
