"""Forgets a user of a whole installation, and searches every place for what is left, the files included."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from torture.deployment import Deployment
from torture.figures import Figure
from torture.findings import Findings
from torture.persistent_client import PersistentClient
from torture.stories import Teller

PART = "forget"

LOG_MARGIN_BYTES = 24 * 1024 * 1024
"""Bytes of further writes that rotate the transaction logs (4 MiB each, of which one is kept)."""

CHECKPOINT_SECONDS = 420
"""Seconds in which a checkpoint must come (every 5 minutes) and the logs that it makes superfluous go."""

CHUNK_BYTES = 8 * 1024 * 1024


async def run_forget(deployment: Deployment, findings: Findings) -> list[Figure]:
    """Fill a user with a word that nothing else contains, forget the user, and count where the word is left."""
    word, user = f"zq{uuid.uuid4().hex}", f"gone-{uuid.uuid4().hex[:8]}"
    client = PersistentClient(deployment.address, deployment.key, findings)
    try:
        await _fill(Teller(client), user, word)
        erased = (await client.send("DELETE", f"/v1/users/{user}")).json()
        answers = await _count_in_answers(client, user, word)
    finally:
        await client.close()
    jobs = await _count_in_jobs(deployment, word)
    started = time.monotonic()
    at_once = _split(deployment, _files_with(deployment.data_dir, word))
    left = await _wait_until_gone(deployment, word)
    seconds = time.monotonic() - started
    for path in left.logs:
        findings.add("word in a transaction log", str(path.relative_to(deployment.folder)))
    return [
        Figure.count(PART, "residue in graph, jobs and caches, as the receipt says", erased["residue"], most=0),
        Figure.count(PART, "answers with the forgotten word", answers, most=0),
        Figure.count(PART, "rows of the job store with the word", jobs, most=0),
        Figure.count(PART, "transaction logs with the word at once", len(at_once.logs)),
        Figure.count(PART, "transaction logs with the word after writes and a checkpoint", len(left.logs), most=0),
        Figure(PART, "seconds until no transaction log has it", f"{seconds:.0f}" if not left.logs else "—"),
        Figure.count(PART, "store and index files with the word in freed space, then", len(left.others)),
    ]


@dataclass(frozen=True)
class FoundFiles:
    """The files with the word: transaction logs, and others."""

    logs: list[Path]
    others: list[Path]


def _split(deployment: Deployment, found: Iterable[Path]) -> FoundFiles:
    """Separate the transaction logs, which go at a checkpoint, from stores and indexes, whose space is used again."""
    paths = list(found)
    logs = [path for path in paths if "transactions" in path.relative_to(deployment.folder).parts]
    return FoundFiles(logs, [path for path in paths if path not in logs])


async def _fill(teller: Teller, user: str, word: str) -> None:
    """Write the word everywhere a caller can, and read it so that caches contain it."""
    ids = await teller.save(user, f"likes {word} one", f"likes {word} two")
    root = f"/v1/users/{user}"
    await teller.write("patch", "PATCH", f"{root}/memories/{ids[0]}", {"content": f"likes {word} three"})
    turns = [{"role": "user", "content": f"I keep {word}", "metadata": {"word": word}}]
    body = {"session_id": word, "messages": turns, "wait": True}
    await teller.write("messages", "POST", f"{root}/messages", body)
    await teller.client.send("GET", f"{root}/entities/lookup?q={word}")
    await teller.client.send("POST", f"{root}/search", {"query": word, "include_messages": True})
    await teller.client.send("POST", f"{root}/context", {"question": word})


async def _count_in_answers(client: PersistentClient, user: str, word: str) -> int:
    """Return how many reads of the user still answer with the word."""
    root = f"/v1/users/{user}"
    reads = [
        await client.send("GET", f"{root}/export"),
        await client.send("GET", f"{root}/memories?include_superseded=true"),
        await client.send("GET", f"{root}/entities/lookup?q=likes"),
        await client.send("POST", f"{root}/search", {"query": "likes", "include_messages": True}),
        await client.send("POST", f"{root}/context", {"question": "What do I like?"}),
    ]
    return sum(word in response.text for response in reads)


async def _count_in_jobs(deployment: Deployment, word: str) -> int:
    """Return the number of rows of the job store in Postgres that contain the word in any column."""
    if deployment.postgres is None:
        return 0
    count = 0
    async with await psycopg.AsyncConnection.connect(deployment.postgres.url, autocommit=True) as connection:
        tables = await connection.execute(
            "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        for (name,) in await tables.fetchall():
            query = f"SELECT count(*) FROM {name} AS stored WHERE stored::text LIKE %s"
            found = await connection.execute(query.encode(), [f"%{word}%"])
            row = await found.fetchone()
            count += row[0] if row else 0
    return count


async def _wait_until_gone(deployment: Deployment, word: str) -> FoundFiles:
    """Write what rotates the transaction logs; return the files with the word once no log has it or time is over."""
    deadline = time.monotonic() + CHECKPOINT_SECONDS
    headers = {"Authorization": f"Bearer {deployment.key}"}
    async with httpx.AsyncClient(base_url=deployment.address, headers=headers, timeout=60) as client:
        written = 0
        while True:
            if written < LOG_MARGIN_BYTES:
                memories = [{"content": f"fills {uuid.uuid4().hex} " + "text " * 500} for _ in range(100)]
                body = {"memories": memories}
                (await client.post("/v1/users/filler/memories", json=body)).raise_for_status()
                written += 100 * 2500
                continue
            found = _split(deployment, await asyncio.to_thread(list, _files_with(deployment.data_dir, word)))
            if not found.logs or time.monotonic() > deadline:
                return found
            await asyncio.sleep(10)


def _files_with(folder: Path, word: str) -> Iterator[Path]:
    """Yield the files below a folder that contain a word."""
    needle = word.encode()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and _contains(path, needle):
            yield path


def _contains(path: Path, needle: bytes) -> bool:
    tail = b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                if needle in tail + chunk:
                    return True
                tail = chunk[-len(needle) :]
    except FileNotFoundError:  # rotated away meanwhile
        pass
    return False
