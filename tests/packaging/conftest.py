"""The distributions, built once per run from the checkout, and clean environments to install them into."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from graphmem.runtime.files import FileLock
from graphmem.runtime.settings import Settings
from tests.cli.conftest import cli, cli_without_settings
from tests.conftest import QUIET_WORKERS

__all__ = ["cli", "cli_without_settings"]

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 400
"""Longest time for pip to install the full package from an empty cache."""


def run_python(python: Path | str, *arguments: str, cwd: Path, timeout: int = 240, **variables: str) -> str:
    """Run Python outside the checkout, without its import path, and return what it prints.

    Raises AssertionError with the output when the exit status is not 0.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAPHMEM_"))}
    compiled = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}
    done = subprocess.run(
        [str(python), *arguments],
        cwd=cwd,
        env={**inherited, **compiled, **QUIET_WORKERS, **variables},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def create_environment(folder: Path, wheel: Path, *options: str) -> Path:
    """Create a virtual environment with one wheel, installed with options of pip, and return its Python."""
    venv.create(folder)
    python = folder / "bin" / "python"
    _install(folder, python, *options, str(wheel))
    return python


def _install(folder: Path, python: Path | str, *options: str) -> None:
    """Install with the pip of this environment, so that others need none."""
    pip = ("-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run_python(sys.executable, *pip, *options, cwd=folder, timeout=INSTALL_SECONDS)


async def create_framework_environment(folder: Path, wheel: Path, framework: str) -> Path:
    """Create a virtual environment with one wheel and a framework, and return its Python.

    A framework and its dependencies take a minute to install and to compile: they are in the cache folder, once for
    each version of Python.
    """
    cache = Settings().cache_dir.expanduser().absolute() / "frameworks"
    packages = cache / f"{framework}-{sysconfig.get_python_version()}"
    cache.mkdir(parents=True, exist_ok=True)
    async with FileLock(cache / "install.lock"):
        if not packages.exists():
            unfinished = packages.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            await asyncio.to_thread(_install, folder, sys.executable, f"--target={unfinished}", framework)
            unfinished.replace(packages)
    venv.create(folder)
    python = _add_packages(folder / "bin" / "python", packages)
    with zipfile.ZipFile(wheel) as archive:  # that pip installs it is tested elsewhere, and takes seconds
        archive.extractall(_site_packages(python))
    return python


def _add_packages(python: Path, packages: Path | str) -> Path:
    """Have a virtual environment import from another folder what it has not."""
    (_site_packages(python) / "dependencies.pth").write_text(str(packages), "utf-8")
    return python


def _site_packages(python: Path) -> Path:
    (folder,) = (python.parents[1] / "lib").glob("python*/site-packages")
    return folder


def build(source: Path, target: Path, *formats: str) -> list[Path]:
    """Build distributions with the installed hatchling, which `build` starts several times, and return their files."""
    targets = chain.from_iterable(("--target", name) for name in formats)
    run_python(sys.executable, "-m", "hatchling", "build", *targets, "--directory", str(target), cwd=source)
    return sorted(target.iterdir())


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel and the sdist of graphmem."""
    return build(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist")


@pytest.fixture(scope="session")
def wheel(distributions: list[Path]) -> Path:
    """The wheel of graphmem."""
    return next(path for path in distributions if path.suffix == ".whl")


@pytest.fixture(scope="session")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of graphmem-client."""
    return build(ROOT / "packaging/graphmem-client", tmp_path_factory.mktemp("client-dist"), "wheel")[0]


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which graphmem is installed from its wheel.

    Its dependencies are those of the environment that runs the tests: a test checks that the wheel names them all.
    """
    return _add_packages(
        create_environment(tmp_path_factory.mktemp("full"), wheel, "--no-deps"), sysconfig.get_path("purelib")
    )


@pytest.fixture(scope="session")
def client_installed(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a clean environment in which only graphmem-client is installed."""
    return create_environment(tmp_path_factory.mktemp("client"), client_wheel, "-c", str(ROOT / "constraints.txt"))
