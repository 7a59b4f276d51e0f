"""What is published installs and works without the repository."""

from __future__ import annotations

import ast
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from twine.commands.check import check

from tests.packaging.conftest import INSTALL_SECONDS, ROOT, run_python

pytestmark = pytest.mark.timeout(INSTALL_SECONDS + 200)


def test_wheel_installs_two_packages_and_no_global_api(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"graphmem", "graphmem_api"}


def test_sdist_contains_tests_and_licence(distributions: list[Path]) -> None:
    sdist = next(path for path in distributions if path.name.endswith(".tar.gz"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "tests/conftest.py", "cypher/fragments.cypher"} <= names
    assert not [name for name in names if name.startswith((".venv", "reports", "dist"))]


def test_metadata_is_valid(distributions: list[Path], client_wheel: Path) -> None:
    assert not check([str(path) for path in (*distributions, client_wheel)], strict=True), "see what twine has printed"


def test_both_distributions_have_the_same_version() -> None:
    versions = {
        tomllib.loads((ROOT / path).read_text("utf-8"))["project"]["version"]
        for path in ("pyproject.toml", "packaging/graphmem-client/pyproject.toml")
    }
    assert len(versions) == 1


def test_installed_packages_are_those_of_the_wheel_and_none_is_called_api(installed: Path, tmp_path: Path) -> None:
    show = (
        "import importlib.util, graphmem, graphmem_api.app\n"
        "print(graphmem.__version__, importlib.util.find_spec('api'), graphmem.__file__, graphmem_api.__file__)"
    )
    version, global_api, *files = run_python(installed, "-c", show, cwd=tmp_path).split()
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert global_api == "None"
    assert all(str(installed.parent.parent) in file for file in files)


def test_dependencies_provide_what_is_imported_and_no_torch() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = with_dependencies(declared["dependencies"])
    optional = with_dependencies(chain.from_iterable(declared["optional-dependencies"].values()))
    assert "torch" not in required
    providers = packages_distributions()
    for path in chain(ROOT.glob("graphmem/**/*.py"), ROOT.glob("api/graphmem_api/**/*.py")):
        for module, is_lazy in imported_modules(path):
            names = {canonicalize_name(name) for name in providers.get(module, ())}
            provided = required | optional if is_lazy or path.parent.name == "integrations" else required
            assert names & provided or not names - {"graphmem"}, f"{path.name} imports {module}"


def with_dependencies(requirements: Iterable[str]) -> set[str]:
    """Return the names of distributions and of all that they depend on, as far as they are installed."""
    found: set[tuple[str, frozenset[str]]] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in found:
            continue
        found.add(key)
        with suppress(PackageNotFoundError):
            for text in requires(requirement.name) or ():
                needed = Requirement(text)
                extras = ["", *requirement.extras]
                if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                    left.append(needed)
    return {name for name, _ in found}


def imported_modules(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the top-level modules that a file imports, with whether it does so within a function or for types only."""
    tree = ast.parse(path.read_text("utf-8"))
    eager = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], id(node) not in eager) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], id(node) not in eager


def test_client_alone_imports_without_the_server_dependencies_and_reports_an_unreachable_server(
    client_installed: Path, tmp_path: Path
) -> None:
    show = (
        "import sys, graphmem\n"
        "from graphmem import Unavailable\n"
        "from graphmem.client import AsyncClient, Client\n"
        "from graphmem.compat.mem0 import MemoryClient\n"
        "heavy = {'neo4j', 'openai', 'fastapi', 'numpy', 'dbos', 'onnxruntime', 'dateparser', 'pydantic_ai'}\n"
        "print(graphmem.__version__, sorted(heavy & set(sys.modules)))\n"
        "try:\n"
        "    Client('gm_x', 'http://127.0.0.1:9', attempts=1).search('ada', 'tea')\n"
        "except Unavailable as error:\n"
        "    print(error)"
    )
    imported, *told = run_python(client_installed, "-c", show, cwd=tmp_path).splitlines()
    version, heavy = imported.split(maxsplit=1)
    assert heavy == "[]"
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert "127.0.0.1:9" in "".join(told)
