"""The chart rendered as helm does, by a program that is built while other tests run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.deployments import CHART
from tests.deploy.go_program import GoUnavailable, build_program, download_keda

FOLDER = Path(__file__).parent
RELEASE, NAMESPACE = "memory", "agents"
NEWEST_KUBERNETES = "1.37"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests last, because the program they need takes a minute to build."""
    items.sort(key=lambda item: item.path.is_relative_to(FOLDER))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the program in another process as soon as it is known that a test needs it."""
    is_first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    needs_program = any("chartcheck" in getattr(item, "fixturenames", ()) for item in session.items)
    if not is_first or not needs_program or session.config.option.collectonly:
        return
    build = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.go_program"],
        cwd=session.config.rootpath, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    session.config.add_cleanup(lambda: _interrupt(build))


def _interrupt(build: subprocess.Popen[bytes]) -> None:
    """End a build that nothing waits for any more."""
    if build.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(build.pid, signal.SIGINT)
        build.wait(timeout=30)


@dataclass(frozen=True)
class Rendered:
    """What helm makes of the chart with some values."""

    objects: list[dict[str, Any]]
    refusal: str
    """Why it makes nothing."""
    warnings: list[str]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return the only object of a kind and a name without that of the release."""
        full_name = f"{RELEASE}-graphmem{name}"
        [found] = [item for item in self.objects if (item["kind"], item["metadata"]["name"]) == (kind, full_name)]
        return found

    def kinds(self) -> list[str]:
        """Return the kinds of the objects, in order."""
        return sorted(item["kind"] for item in self.objects)


Render = Callable[..., Rendered]


@pytest.fixture(scope="session")
async def chartcheck() -> Path:
    """The path of the program that renders and lints charts."""
    try:
        return await build_program()
    except GoUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
async def scaled_object_schema() -> dict[str, Any]:
    """The JSON Schema of KEDA's ScaledObject."""
    try:
        module = await download_keda()
    except GoUnavailable as reason:
        pytest.skip(str(reason))
    definition = yaml.safe_load((module / "config/crd/bases/keda.sh_scaledobjects.yaml").read_text("utf-8"))
    [version] = definition["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


@pytest.fixture
def render(chartcheck: Path) -> Render:
    """Render the chart with values, for a version of Kubernetes and a release."""

    def render_chart(
        values: dict[str, Any], kube_version: str = NEWEST_KUBERNETES, *, release: str = RELEASE
    ) -> Rendered:
        request = {
            "chart": str(CHART),
            "release": release,
            "namespace": NAMESPACE,
            "kube_version": kube_version,
            "values": values,
        }
        return deepcopy(_run(chartcheck, json.dumps(request)))

    return render_chart


@cache
def _run(chartcheck: Path, request: str) -> Rendered:
    """Render once what several tests look at."""
    done = subprocess.run([chartcheck], input=request, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    texts = (answer["templates"] or {}).values()
    objects = [item for text in texts for item in yaml.safe_load_all(text) if item]
    return Rendered(objects, answer["refusal"], answer["warnings"])
