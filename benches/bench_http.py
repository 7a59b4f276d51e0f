"""Measures requests over HTTP in a closed loop: agents that send the next request once the last one is answered.

    python -m benches.bench_http [--facts 100000] [--agents 1,8] [--seconds 20] [--verbs search_big,…] [--peer]
        [--data FOLDER] [--synthetic-vectors]

Fills an embedded Neo4j in a folder, by default a temporary one, with users of 500 and of 10,000 facts, as `bench_scale`
does but with the vectors of the embedder, and gives those whose memories are read some messages; a folder given by
`--data` is filled once. Starts `graphmem serve` as a process of its own, and has Locust send one kind of request at a
time (Locust needs the dependency group `load`). With `--peer`, Graphiti's search answers the same questions in this
process. Writes `http.md` and `http.json` into the report folder.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import tempfile
import time
import uuid
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from benches.bench_scale import BIG, SMALL, load, make_questions, sample_fact_texts
from benches.english_words import load_english_words
from benches.http_report import HttpResult, table
from benches.http_verbs import LoadPlan, PlannedUser, Verb, long_text, make_verbs
from benches.locust_process import run_locust
from benches.machine import describe_machine
from benches.previous import read_previous
from benches.server_process import ServerProcess, clean_environment, running_neo4j
from benches.synthetic_data import SyntheticData, users
from graphmem.app.components import Components, open_components
from graphmem.evaluation.graphiti_system import GraphitiBaseline, open_graphiti_baseline
from graphmem.runtime import process
from graphmem.tenants.owners import Owner

TENANT = "default"
"""The tenant of the server's first key."""

READ_USERS = 10
"""Most users of each size whose memories are read."""

QUESTIONS = 200
"""Questions to the users of each size."""

NAMES_PER_USER = 10
"""Names that are looked up for each user, so often that their answers are cached."""

MESSAGES_PER_USER = 40
"""Messages of each user whose memories are read, a quarter of them long."""

IDLE_WAIT_SECONDS = 60
"""Longest wait for the end of jobs before a measurement."""

IDLE_SHARE = 0.15
"""CPU seconds in a second below which the server is taken to be idle."""

AGENTS_FILE = Path(__file__).with_name("http_agents.py")


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured, and for how long."""

    facts: int
    big: int
    small: int
    agents: list[int]
    seconds: float
    warm_up: float
    verbs: list[str]
    peer: bool
    synthetic_vectors: bool

    @property
    def fill(self) -> dict[str, object]:
        """What a graph that was filled with these options contains."""
        return {
            "facts": self.facts,
            "big": self.big,
            "small": self.small,
            "synthetic_vectors": self.synthetic_vectors,
        }


class HttpBenchmark:
    """A filled server and what its requests are made of."""

    def __init__(self, options: Options, folder: Path, server: ServerProcess) -> None:
        self._options = options
        self._folder = folder
        self._server = server
        self._words: list[str] = []
        self._owners: dict[str, list[Owner]] = {}
        self._filled_file = server.data_dir / "filled.json"
        self._nonce = uuid.uuid4().hex[:8]

    async def run(self) -> tuple[list[HttpResult], list[str]]:
        """Fill the graph, start the server and measure; return the results and remarks on them."""
        async with AsyncExitStack() as stack:
            settings = await stack.enter_async_context(running_neo4j(self._server.data_dir))
            components = await stack.enter_async_context(open_components(settings))
            self._words = await load_english_words(settings)
            planned = await self._fill(components)
            stack.push_async_callback(self._server.stop)
            print(f"server ready after {await self._server.start():.1f} s", flush=True)
            plan, remarks = await self._prepare(planned)
            baseline = None
            if self._options.peer:
                baseline = await stack.enter_async_context(
                    open_graphiti_baseline(components.settings, components.embedder)
                )
            return await self._measure_all(plan, baseline), remarks

    async def _fill(self, components: Components) -> dict[str, list[PlannedUser]]:
        """Write the users unless that was done before; return those whose memories are read, by size."""
        options, data = self._options, SyntheticData(7, components.embedder.dimension, self._words)
        embedder = None if options.synthetic_vectors else components.embedder
        sizes = {options.big: "big", options.small: "small"}
        total, started = 0, time.perf_counter()
        for number, (owner, count) in enumerate(users(options.facts, TENANT, options.big, options.small)):
            self._owners.setdefault(sizes[count], []).append(owner)
            if self._is_filled():
                continue
            await load(components, data, owner, count, embedder)
            total += count
            if number % 20 == 0:
                print(f"{total:,} facts, {total / (time.perf_counter() - started):.0f} a second", flush=True)
        await components.graph.fetch("schema.await_indexes")
        return {size: await self._plan_users(components, size) for size in sorted(self._owners, reverse=True)}

    def _is_filled(self) -> bool:
        """Return whether an earlier run has filled the folder; end the program if it did so with other options."""
        if not self._filled_file.exists():
            return False
        if (found := json.loads(self._filled_file.read_text("utf-8"))) != self._options.fill:
            raise SystemExit(f"{self._server.data_dir} was filled with other options, {found}: use another folder.")
        return True

    async def _plan_users(self, components: Components, size: str) -> list[PlannedUser]:
        """Choose the users of a size whose memories are read, and what they are asked."""
        source = SyntheticData(13, 1, self._words)
        chosen = self._owners[size][:READ_USERS]
        planned = []
        for owner in chosen:
            facts = await sample_fact_texts(components, owner)
            questions = make_questions(source, facts, QUESTIONS // len(chosen))
            names = [" ".join(source.rng.choice(facts).split()[-2:]) for _ in range(NAMES_PER_USER)]
            planned.append(PlannedUser(user_id=owner.user_id, questions=questions, names=names))
        return planned

    async def _prepare(self, planned: dict[str, list[PlannedUser]]) -> tuple[LoadPlan, list[str]]:
        """Create a key, write messages and export a user of each size; return the plan and remarks."""
        async with self._server.open_client() as admin:
            body = {"name": f"agents {self._nonce}", "role": "admin"}
            key = (await _ok(admin.post("/v1/admin/keys", json=body))).json()["key"]
        exports: dict[str, Path] = {}
        remarks: list[str] = []
        async with self._server.open_client(key) as client:
            for size, members in planned.items():
                if not self._is_filled():
                    await _send_messages(client, members, self._words)
                document = (await _ok(client.get(f"/v1/users/{members[0].user_id}/export"))).content
                exports[size] = self._folder / f"export-{size}.json"
                exports[size].write_bytes(document)
                remarks.append(await _try_import(client, f"first-{size}-{self._nonce}", document))
        self._filled_file.write_text(json.dumps(self._options.fill), "utf-8")
        plan = LoadPlan(
            address=self._server.address,
            key=key,
            pids=self._server.pids,
            users=planned,
            words=self._words,
            exports=exports,
        )
        return plan, remarks

    async def _measure_all(self, plan: LoadPlan, baseline: GraphitiBaseline | None) -> list[HttpResult]:
        options = self._options
        verbs = make_verbs({size: {"big": options.big, "small": options.small}[size] for size in plan.users})
        if unknown := set(options.verbs) - {verb.key for verb in verbs}:
            raise SystemExit(
                f"No such verbs: {', '.join(sorted(unknown))}; {', '.join(verb.key for verb in verbs)} are."
            )
        peers: dict[tuple[str, int], list[float]] = {}
        results = []
        for verb, agents in itertools.product(verbs, options.agents):
            if (options.verbs and verb.key not in options.verbs) or agents > (verb.most_agents or agents):
                continue
            result = await self._measure(plan, verb, agents)
            if baseline and verb.peer and verb.size:
                if (verb.size, agents) not in peers:
                    peers[verb.size, agents] = await self._measure_peer(baseline, plan, verb.size, agents)
                result.peer_ms = peers[verb.size, agents]
            results.append(result)
            figures = ", ".join(f"{name} {value:.1f}" for name, value in result.figures.items())
            print(f"{verb.title}, {agents} agents: {figures}", flush=True)
        return results

    async def _measure(self, plan: LoadPlan, verb: Verb, agents: int) -> HttpResult:
        """Let Locust send one kind of request."""
        options = self._options
        run = f"{verb.key}-{agents}-{self._nonce}"
        prefix = self._folder / run
        warm_up = options.warm_up if verb.warms_up else 0.0
        plan = plan.model_copy(update={"run": run, "verb": verb.key, "warm_up_seconds": warm_up})
        plan_file, samples_file = prefix.with_suffix(".plan.json"), prefix.with_suffix(".samples.json")
        plan_file.write_text(plan.model_dump_json(), "utf-8")
        environment = {
            "PYTHONPATH": clean_environment()["PYTHONPATH"],
            "GRAPHMEM_BENCH_PLAN": str(plan_file),
            "GRAPHMEM_BENCH_SAMPLES": str(samples_file),
        }
        await wait_until_idle(plan.pids.values())
        await run_locust(AGENTS_FILE, agents, warm_up + options.seconds, environment, spawn_rate=agents)
        samples = json.loads(samples_file.read_text("utf-8"))
        return HttpResult(verb, agents, **samples)

    async def _measure_peer(self, baseline: GraphitiBaseline, plan: LoadPlan, size: str, callers: int) -> list[float]:
        """Return the milliseconds of Graphiti's search, called in a closed loop in this process."""
        owners = {owner.user_id: owner for owner in self._owners[size]}
        asked = [(owners[user.user_id], question) for user in plan.users[size] for question in user.questions]
        warm_at = time.perf_counter() + self._options.warm_up
        end = warm_at + self._options.seconds
        durations: list[float] = []

        async def call(first: int) -> None:
            for owner, question in itertools.islice(itertools.cycle(asked), first * 7, None):
                started = time.perf_counter()
                if started >= end:
                    return
                await baseline.search(owner, question, 10)
                if started >= warm_at:
                    durations.append((time.perf_counter() - started) * 1000)

        await asyncio.gather(*(call(number) for number in range(callers)))
        return durations


async def wait_until_idle(pids: Iterable[int]) -> None:
    """Wait until processes have ended the work that earlier requests left to them, such as jobs."""
    processes = [psutil.Process(pid) for pid in pids]
    end = time.perf_counter() + IDLE_WAIT_SECONDS
    while time.perf_counter() < end:
        before = [process.cpu_times() for process in processes]
        await asyncio.sleep(1)
        after = [process.cpu_times() for process in processes]
        used = sum(b.user + b.system - a.user - a.system for a, b in zip(before, after, strict=True))
        if used < IDLE_SHARE:
            return


async def _send_messages(client: httpx.AsyncClient, members: Sequence[PlannedUser], words: list[str]) -> None:
    """Give users two sessions of messages, of which some are long."""
    source = SyntheticData(11, 1, words)
    for user, session in itertools.product(members, range(2)):
        turns = [
            {
                "role": ("user", "assistant")[turn % 2],
                "content": long_text(source.rng, words) if turn % 4 == 3 else " ".join(source.sentence()),
            }
            for turn in range(MESSAGES_PER_USER // 2)
        ]
        body = {"session_id": f"talk{session}", "messages": turns, "extract": False}
        await _ok(client.post(f"/v1/users/{user.user_id}/messages", json=body))


async def _try_import(client: httpx.AsyncClient, user_id: str, document: bytes) -> str:
    """Import an export once; return a remark on it."""
    headers = {"Content-Type": "application/json"}
    imported = (await _ok(client.post(f"/v1/users/{user_id}/import", content=document, headers=headers))).json()
    counts = ", ".join(f"{count:,} {section}" for section, count in imported["imported"].items() if count)
    how = "computed again" if imported["vectors_remade"] else "taken over, without embedding"
    return f"An import of {counts} is an export of {len(document) / 1e6:.1f} MB whose vectors are {how}."


async def _ok(work: Awaitable[httpx.Response]) -> httpx.Response:
    response = await work
    if response.is_error:
        raise RuntimeError(f"{response.request.url.path} answered {response.status_code}: {response.text[:500]}")
    return response


def make_report(
    results: Sequence[HttpResult], options: Options, remarks: Sequence[str], machine: str, out: Path
) -> str:
    """Write the report in Markdown and JSON; return the Markdown."""
    previous = read_previous()
    head = [
        machine,
        f"{options.facts:,} facts; {options.seconds:g} s each after {options.warm_up:g} s of warm-up; the agents run "
        "on the same cores as the server. Texts are sentences of ten frequent English words in random order.",
        *(["The vectors of facts are synthetic."] if options.synthetic_vectors else []),
        *remarks,
    ]
    text = table(results, previous, head)
    out.mkdir(parents=True, exist_ok=True)
    (out / "http.md").write_text(text, "utf-8")
    rows = [result.as_json(previous.find_http(result.verb.key, result.agents)) for result in results]
    document = {"machine": machine, "facts": options.facts, "seconds": options.seconds, "results": rows}
    (out / "http.json").write_text(json.dumps(document, indent=2), "utf-8")
    return text


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000, help="facts in the graph")
    parser.add_argument("--big", type=int, default=BIG, help="facts of a user with many")
    parser.add_argument("--small", type=int, default=SMALL, help="facts of a user with few")
    parser.add_argument("--agents", default="1,8", help="numbers of agents, separated by commas")
    parser.add_argument("--seconds", type=float, default=20, help="seconds of each measurement")
    parser.add_argument("--warm-up", type=float, default=15, help="seconds before each that are not measured")
    parser.add_argument("--verbs", default="", help="what to measure, separated by commas; absent: everything")
    parser.add_argument("--data", type=Path, help="folder of the database; a temporary one by default")
    parser.add_argument(
        "--synthetic-vectors",
        action="store_true",
        help="fill without the embedder: faster, but questions resemble no fact",
    )
    parser.add_argument("--peer", action="store_true", help="measure Graphiti too")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report")
    given = parser.parse_args()
    options = Options(
        facts=given.facts,
        big=given.big,
        small=given.small,
        agents=[int(count) for count in given.agents.split(",")],
        seconds=given.seconds,
        warm_up=given.warm_up,
        verbs=[verb for verb in given.verbs.split(",") if verb],
        peer=given.peer,
        synthetic_vectors=given.synthetic_vectors,
    )
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        benchmark = HttpBenchmark(options, folder, ServerProcess(given.data or folder / "data"))
        results, remarks = process.run(benchmark.run())
    print(make_report(results, options, remarks, describe_machine(load_before), given.out))


if __name__ == "__main__":
    main()
