"""Runs every part and prints one table of figures.

    python -m torture [PART …] [--rounds 20] [--cases 10000] [--runs 1000] [--load-seconds 600] [--seed N] [--out DIR]

The parts are `fuzz`, `answers`, `isolation`, `model`, `crash`, `cluster`, `load` and `forget`; without names all of
them run. Each starts an embedded Neo4j in a temporary folder, `crash`, `load` and `forget` with a whole installation,
`cluster` two of them with an installation of several machines behind a proxy. The table is also written to `torture.md`
in the folder of the reports, with what reproduces each finding. Exit status 1: a goal was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.neo4j.embedded.server import EmbeddedNeo4j
from graphmem.neo4j.migrations import check_invariants
from graphmem.runtime import process
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.api.conftest import serve_app
from tests.user_data.complete_user import fill_user
from torture.answered_sessions import PromptedModel, play_sessions
from torture.cluster import clustered
from torture.crash import plan_in_turn, plan_twice, run_crashes
from torture.deployment import deployed
from torture.figures import Figure, table
from torture.findings import Findings
from torture.forget import run_forget
from torture.fuzz_answers import MODEL_SETTINGS, HostileModel, fuzz_answers
from torture.fuzz_documents import DocumentFuzzer
from torture.fuzz_parsers import fuzz_parsers
from torture.fuzz_requests import STEPS, RequestFuzzer
from torture.honest_model import serving_honest_model
from torture.isolation import probe_isolation
from torture.load import run_load
from torture.model import EveryVerb, run_model
from torture.space_isolation import probe_space_isolation
from torture.throughput import measure_throughput
from torture.trust import probe_trust

KEY = "torture-" + uuid.uuid4().hex

FUZZ_SHARES = {"requests": 0.5, "sequences": 0.25, "documents": 0.15, "parsers": 0.15, "answers": 0.05}
"""Shares of the cases of `fuzz`, together more than 1: some requests cannot be sent, and sequences end early."""

SESSION_CASES = 20
"""Cases for which `answers` plays one session."""


SPACE_SECONDS_PER_CASE, MAX_SPACE_SECONDS = 0.03, 300.0
"""Seconds for which a space is probed for each case, and at most."""


@dataclass(frozen=True)
class Sizes:
    """How much each part tries."""

    rounds: int
    cases: int
    runs: int
    load_seconds: int
    seed: int


@dataclass(frozen=True)
class LocalServer:
    """A server in this process: its services, its application and its address."""

    services: Services
    app: FastAPI
    address: str


@asynccontextmanager
async def local_server(**changes: Any) -> AsyncIterator[LocalServer]:
    """Serve the API in this process, with a worker and an embedded Neo4j in a temporary folder."""
    base = Settings()
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder:
        async with await EmbeddedNeo4j.start_or_join(Path(folder), base.cache_dir, mirror=base.jar_mirror) as server:
            settings = Settings(
                neo4j_uri=server.info.uri,
                neo4j_password=SecretStr(server.info.password),
                data_dir=Path(folder),
                admin_key=SecretStr(KEY),
                nightly=False,
                **changes,
            )
            async with Services.open(settings) as services:
                app = create_app(services, settings)
                async with serve_app(app) as address:
                    yield LocalServer(services, app, address)


async def fuzz(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Fuzz requests, documents, parsers and answers of a model."""
    with HostileModel(sizes.seed) as model:
        async with local_server(openai_base_url=model.base_url, **MODEL_SETTINGS) as server:
            cases = {name: max(1, int(sizes.cases * share)) for name, share in FUZZ_SHARES.items()}
            requests = RequestFuzzer(server.app.openapi(), server.address, KEY, findings)
            await asyncio.to_thread(requests.fuzz_operations, cases["requests"], sizes.seed)
            await asyncio.to_thread(requests.fuzz_sequences, max(1, cases["sequences"] // STEPS))
            await _fuzz_documents(server, sizes.seed, cases["documents"], findings)
            await asyncio.to_thread(fuzz_parsers, cases["parsers"], findings)
            await fuzz_answers(server.services, f"t{uuid.uuid4().hex[:12]}", cases["answers"], model, findings)
            broken = await count_violations(server.services, findings)
    return [
        Figure.count("fuzz", "cases", findings.cases, least=sizes.cases),
        Figure.count("fuzz", "500s, hangs, undocumented responses", findings.total - broken, most=0),
        Figure.count("fuzz", "violations of invariants", broken, most=0),
    ]


async def answers(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Extract sessions with answers over everything that the prompts list, while the memories change."""
    with PromptedModel(sizes.seed) as model:
        settings = {**MODEL_SETTINGS, "llm_timeout": 60}  # the memories change before the second answer
        async with local_server(openai_base_url=model.base_url, **settings) as server:
            tenant, sessions = f"t{uuid.uuid4().hex[:12]}", max(1, sizes.cases // SESSION_CASES)
            done = await play_sessions(server.services, tenant, sessions, model, findings, sizes.seed)
            broken = await count_violations(server.services, findings)
    return [
        Figure.count("answers", "sessions", findings.cases, least=sessions),
        *(Figure.count("answers", f"done: {action}", count) for action, count in sorted(done.items())),
        Figure.count(
            "answers", "jobs that failed, unexpected errors, lost statements", findings.total - broken, most=0
        ),
        Figure.count("answers", "violations of invariants", broken, most=0),
    ]


async def _fuzz_documents(server: LocalServer, seed: int, cases: int, findings: Findings) -> None:
    template = Owner("default", f"template-{uuid.uuid4().hex}")
    await fill_user(server.services, template)
    document = json.loads(await server.services.exports.export(template))
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers) as client:
        users = [f"user-{uuid.uuid4().hex}" for _ in range(8)]
        await DocumentFuzzer(client, document, findings, seed).fuzz(max(1, cases // 3), users)


async def count_violations(services: Services, findings: Findings) -> int:
    """Check the invariants of the whole graph, record what violates them, and return how much does."""
    count = 0
    async for check in check_invariants(services.components.graph):
        count += check.count
        if check.count:
            findings.add(f"invariant {check.name}", f"{check.violation} {check.ids}")
    return count


async def isolation(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Probe what callers see and change of each other, and of a space whose members change meanwhile."""
    async with local_server() as server:
        await probe_isolation(
            server.services, server.app.openapi(), server.address, sizes.cases // 5, findings, seed=sizes.seed
        )
        foreign = findings.cases
        seconds = min(MAX_SPACE_SECONDS, sizes.cases * SPACE_SECONDS_PER_CASE)
        await probe_space_isolation(server.services, server.address, seconds, findings, sizes.seed)
        in_spaces = findings.cases - foreign
        seeds = range(sizes.seed, sizes.seed + max(1, sizes.cases // 50))
        tried = await probe_trust(server.services, "trust", seeds, findings)
        broken = await count_violations(server.services, findings)
    return [
        Figure.count("isolation", "requests with another user's ids, or with injections", foreign),
        Figure.count("isolation", "requests to a space whose members change", in_spaces),
        Figure.count("isolation", "writes by less trusted sources next to the user's", tried),
        Figure.count("isolation", "violations of invariants", broken, most=0),
        Figure.count("isolation", "responses with data of others, changes of theirs, 5xx", findings.total, most=0),
    ]


async def model(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Compare random writes by concurrent writers with a naive model."""
    async with local_server() as server:
        loop = asyncio.get_running_loop()
        for difference in await asyncio.to_thread(run_model, server.services, loop, sizes.runs):
            findings.add("difference", difference)
        differences = findings.total
        broken = await count_violations(server.services, findings)
    return [
        Figure.count("model", "runs of random writes", EveryVerb.runs, least=sizes.runs),
        Figure.count("model", "differences from the naive model", differences, most=0),
        Figure.count("model", "violations of invariants", broken, most=0),
    ]


async def crash(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Kill processes in storms of writes."""
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder, serving_honest_model() as address:
        async with deployed(Path(folder), address) as deployment:
            chance = random.Random(sizes.seed)
            plan = plan_in_turn(deployment.targets, sizes.rounds, chance)
            return await run_crashes(deployment, plan, chance, findings)


async def cluster(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Measure an installation of several machines, and kill each of its processes twice in storms of writes."""
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder, serving_honest_model(0.5) as address:
        async with clustered(Path(folder), address) as installation:
            figures = await measure_throughput(installation, findings)
            chance = random.Random(sizes.seed)
            plan = plan_twice(installation.targets, sizes.rounds, chance)
            return [*figures, *await run_crashes(installation, plan, chance, findings, "cluster")]


async def load(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Load the API within and beyond its capacity."""
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder, serving_honest_model() as address:
        async with deployed(Path(folder), address) as deployment:
            return await run_load(deployment, sizes.load_seconds)


async def forget(sizes: Sizes, findings: Findings) -> list[Figure]:
    """Forget a user, and search everything for what is left."""
    with tempfile.TemporaryDirectory(prefix="graphmem-torture-") as folder, serving_honest_model() as address:
        async with deployed(Path(folder), address) as deployment:
            return await run_forget(deployment, findings)


PARTS: dict[str, Callable[[Sizes, Findings], Awaitable[list[Figure]]]] = {
    "fuzz": fuzz,
    "answers": answers,
    "isolation": isolation,
    "model": model,
    "crash": crash,
    "cluster": cluster,
    "load": load,
    "forget": forget,
}


async def run(parts: list[str], sizes: Sizes) -> tuple[list[Figure], str]:
    """Run parts one after the other; return their figures and their findings in Markdown."""
    figures: list[Figure] = []
    details: list[str] = []
    for name in parts:
        started, findings = time.monotonic(), Findings()
        figures += await PARTS[name](sizes, findings)
        minutes = (time.monotonic() - started) / 60
        print(f"{name}: {minutes:.1f} minutes, {findings.total} findings", flush=True)
        if findings.total:
            details.append(f"## {name}\n\n{findings.report()}\n")
    return figures, "\n".join(details)


def report(figures: list[Figure], details: str, sizes: Sizes) -> str:
    """Return the report in Markdown."""
    processors, loads = os.cpu_count(), ", ".join(f"{value:.1f}" for value in os.getloadavg())
    about = f"{processors} processors, load averages at the end {loads}, seed {sizes.seed}."
    return f"# Torture\n\n{about}\n\n{table(figures)}\n{details}"


def main() -> None:
    """Run the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; absent: all")
    parser.add_argument(
        "--rounds", type=int, default=20, help="rounds of kills; cluster ends when every process was killed twice"
    )
    parser.add_argument(
        "--cases",
        type=int,
        default=10_000,
        help="cases of fuzzing; isolation tries a fifth as many, answers one session for twenty",
    )
    parser.add_argument("--runs", type=int, default=1000, help="runs of the state machine")
    parser.add_argument("--load-seconds", type=int, default=600, help="seconds of load within capacity")
    parser.add_argument("--seed", type=int, help="repeats a run; absent: a new one")
    parser.add_argument("--out", type=Path, default=Path("reports"), help="folder of the report")
    given = parser.parse_args()
    if unknown := set(given.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    seed = given.seed if given.seed is not None else random.randrange(2**31)
    sizes = Sizes(given.rounds, given.cases, given.runs, given.load_seconds, seed)
    figures, details = process.run(run(given.parts or list(PARTS), sizes))
    given.out.mkdir(parents=True, exist_ok=True)
    text = report(figures, details, sizes)
    (given.out / "torture.md").write_text(text, "utf-8")
    print(text)
    sys.exit(not all(figure.is_met for figure in figures))


if __name__ == "__main__":
    main()
