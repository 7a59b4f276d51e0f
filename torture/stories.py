"""Stories: sequences of acknowledged writes to a user, each with what must be there afterwards."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from torture.persistent_client import PersistentClient

RUNS = "/v1/admin/consolidations"
FORGET_SECONDS = 120.0
"""Seconds that one try to forget a user may take, which waits for a database that is slow but answers."""

FINAL = frozenset({"succeeded", "skipped", "failed", "aborted", "rolled_back"})
JOB_SECONDS = 300
"""Seconds in which a job or a run must end, recovery included."""

Check = Callable[[], Awaitable[list[str]]]
"""Return what differs from what was acknowledged."""

Story = Callable[["Teller", str], Awaitable[Check]]


class Teller:
    """Tells stories by one client; counts what was acknowledged by kind."""

    def __init__(self, client: PersistentClient) -> None:
        self.client = client
        self.acknowledged: Counter[str] = Counter()

    async def write(self, kind: str, method: str, path: str, json: Any = None, **options: Any) -> Any:
        """Send a write until it is acknowledged; return the JSON of the response."""
        response = await self.client.send(method, path, json, **options)
        self.acknowledged[kind] += 1
        return response.json()

    async def save(self, user: str, *contents: str) -> list[str]:
        """Save statements together and return their ids."""
        body = {"memories": [{"content": content} for content in contents]}
        answer = await self.write("save", "POST", f"/v1/users/{user}/memories", body)
        return [result["memory"]["id"] for result in answer["results"]]

    async def contents(self, user: str, word: str) -> Counter[str]:
        """Return how often each current statement with a word is stored."""
        response = await self.client.send("GET", f"/v1/users/{user}/memories?limit=200&keyword={word}")
        return Counter(memory["content"] for memory in response.json()["items"] if word in memory["content"])

    async def compare(self, what: str, user: str, word: str, *expected: str) -> list[str]:
        """Return the difference between the current statements with a word and those expected, each once."""
        found = await self.contents(user, word)
        return [] if found == Counter(expected) else [f"{what} of {user}: {dict(found)} instead of {list(expected)}"]

    async def wait_until_final(self, path: str) -> dict[str, Any]:
        """Return a job or a run once it has ended."""
        pause = 0.3
        async with asyncio.timeout(JOB_SECONDS):
            while True:
                found: dict[str, Any] = (await self.client.send("GET", path)).json()
                if found["status"] in FINAL:
                    return found
                await asyncio.sleep(pause)
                pause = min(1.5 * pause, 2.0)

    async def roll_back(self, run_id: str) -> list[str]:
        """Roll a run back; return why it was not, which is no reason if a try whose answer was lost has done it."""
        path = f"{RUNS}/{run_id}"
        answer = await self.write("rollback", "POST", f"{path}/rollback", {"force": True}, accept=(409,))
        run = (await self.client.send("GET", path)).json()
        is_done = run["status"] == "rolled_back"
        return [] if is_done else [f"rollback of {run_id}, {run['status']}: {json.dumps(answer)}"]


def new_word() -> str:
    """Return a word that no other story uses."""
    return f"note-{uuid.uuid4().hex[:12]}"


async def tell_saves(teller: Teller, user: str) -> Check:
    """Save two statements together, correct one and delete it: all or nothing, each once."""
    word = new_word()
    ids = await teller.save(user, f"keeps {word} one", f"keeps {word} two")
    root = f"/v1/users/{user}/memories/{ids[0]}"
    await teller.write("patch", "PATCH", root, {"content": f"keeps {word} three"})

    async def check() -> list[str]:
        history = (await teller.client.send("GET", root + "/history")).json()["items"]
        wrong = await teller.compare("saved", user, word, f"keeps {word} two", f"keeps {word} three")
        return wrong + ([] if len(history) == 2 else [f"{len(history)} versions of {ids[0]} instead of 2"])

    return check


async def tell_reads(teller: Teller, user: str) -> Check:
    """Read each write right after its acknowledgement, by a list, a lookup and a search."""
    word, wrong = new_word(), list[str]()
    for number in range(3):
        text = f"keeps {word} {number}"
        (memory_id,) = await teller.save(user, text)
        query = f"/v1/users/{user}"
        listed = await teller.contents(user, word)
        search = await teller.client.send("POST", f"{query}/search", {"query": f"{word} {number}", "limit": 50})
        found = {hit["memory"]["id"] for hit in search.json()["results"]}
        if not listed[text] or memory_id not in found:
            wrong.append(f"unread: {text} of {user} was saved, but {'not found' if listed[text] else 'not listed'}")
    return lambda: _fail(*wrong)


async def tell_order(teller: Teller, user: str) -> Check:
    """Send notes one after the other: they are extracted in the order in which they were sent."""
    words, session = [new_word() for _ in range(3)], new_word()
    jobs = []
    for word in words:
        body = {"session_id": session, "messages": [{"role": "user", "content": f"I keep {word}"}]}
        jobs.append((await teller.write("messages", "POST", f"/v1/users/{user}/messages", body))["job_id"])

    async def check() -> list[str]:
        for job_id in jobs:
            await teller.wait_until_final(f"/v1/jobs/{job_id}")
        times = []
        for word in words:
            response = await teller.client.send("GET", f"/v1/users/{user}/memories?limit=200&keyword={word}")
            times += [memory["created_at"] for memory in response.json()["items"]]
        return [] if len(times) == 3 and times == sorted(times) else [f"order of {user}: {words} known at {times}"]

    return check


async def tell_change_of_value(teller: Teller, user: str) -> Check:
    """Save two values of a single-valued predicate, one after the other, and revert the second."""
    word = new_word()
    ids = []
    for value in ("first", "second"):
        memory = {"content": f"{value} {word}", "predicate": "KEEPS", "single_valued": True, "subject": {"name": word}}
        answer = await teller.write("save", "POST", f"/v1/users/{user}/memories", {"memories": [memory]})
        ids.append(answer["results"][0]["memory"]["id"])
    await teller.write("revert", "POST", f"/v1/users/{user}/memories/{ids[0]}/revert")
    return lambda: teller.compare("reverted", user, word, f"first {word}")


async def tell_messages(teller: Teller, user: str) -> Check:
    """Send messages whose notes a job extracts: each message once, each note once."""
    word = new_word()
    turns = [{"role": "user", "content": f"I keep {word}"}, {"role": "assistant", "content": "Noted."}]
    answer = await teller.write(
        "messages", "POST", f"/v1/users/{user}/messages", {"session_id": word, "messages": turns}
    )

    async def check() -> list[str]:
        job = await teller.wait_until_final(f"/v1/jobs/{answer['job_id']}")
        path = f"/v1/users/{user}/sessions/{word}/messages"
        stored = [message["content"] for message in (await teller.client.send("GET", path)).json()["items"]]
        wrong = await teller.compare("extracted", user, word, f"User keeps {word}")
        if wrong:
            wrong.append(f"the job {answer['job_id']} {job['status']}: {job['error'] or job['reason']}")
        expected = [turn["content"] for turn in turns]
        return wrong + ([] if stored == expected else [f"messages of {user}: {stored} instead of {expected}"])

    return check


async def tell_merge(teller: Teller, user: str) -> Check:
    """Merge two statements, and roll the merge back in every second story."""
    word = new_word()
    texts = [f"keeps {word} and tea", f"keeps {word} and bread"]
    ids = await teller.save(user, *texts)
    merged = f"keeps {word} and tea; keeps {word} and bread"
    proposal = {"action": "MERGE", "memory_ids": ids, "content": merged, "verified": True}
    started = await teller.write("merge", "POST", RUNS, {"user_id": user, "proposals": [proposal]})
    run_id = started.get("run_id") or started["id"]
    run = await teller.wait_until_final(f"{RUNS}/{run_id}")
    if run["status"] != "succeeded":
        return lambda: _fail(f"run {run_id} {run['status']}: {run['reason']}")
    if int(ids[0].replace("-", "")[-1], 16) % 2:
        return lambda: teller.compare("merged", user, word, merged)
    refused = await teller.roll_back(run_id)

    async def check() -> list[str]:
        return refused + await teller.compare("rolled back", user, word, *texts)

    return check


async def tell_consolidation(teller: Teller, user: str) -> Check:
    """Consolidate two statements of one fact that a model merges, while the user is written to; roll back every second.

    Whatever becomes of the run, nothing that was acknowledged is lost: it is current, or in history.
    """
    word, other = new_word(), new_word()
    owner = f"tidy-{word}"
    texts = [f"keeps {word} in a box", f"keeps {word} in a box of oak"]
    ids = await teller.save(owner, *texts)
    started = await teller.write("consolidation", "POST", RUNS, {"user_id": owner})
    await teller.save(owner, f"keeps {other} too")
    run_id = started["run_id"]
    run = await teller.wait_until_final(f"{RUNS}/{run_id}")
    if run["status"] != "succeeded":
        return lambda: _fail(f"consolidation {run_id} {run['status']}: {run['reason']}")
    is_rolled_back = bool(int(ids[0].replace("-", "")[-1], 16) % 2)
    refused = await teller.roll_back(run_id) if is_rolled_back else []

    async def check() -> list[str]:
        expected = texts if is_rolled_back else texts[1:]
        wrong = refused + await teller.compare("consolidated", owner, word, *expected)
        wrong += await teller.compare("written meanwhile", owner, other, f"keeps {other} too")
        for memory_id, text in zip(ids, texts, strict=True):
            history = (await teller.client.send("GET", f"/v1/users/{owner}/memories/{memory_id}/history")).json()
            if text not in [version["content"] for version in history["items"]]:
                wrong.append(f"consolidated away: {text} of {owner} is in no version of {memory_id}")
        return wrong

    return check


async def tell_hard_delete(teller: Teller, user: str) -> Check:
    """Erase one of two statements."""
    word = new_word()
    ids = await teller.save(user, f"keeps {word} one", f"keeps {word} two")
    path = f"/v1/users/{user}/memories/{ids[0]}"
    await teller.write("hard delete", "DELETE", path + "?hard=true", accept=(404,))

    async def check() -> list[str]:
        response = await teller.client.send("GET", path + "/history", accept=(404,))
        wrong = [] if response.status_code == 404 else [f"the erased memory {ids[0]} of {user} is there"]
        return wrong + await teller.compare("left", user, word, f"keeps {word} two")

    return check


async def tell_import(teller: Teller, user: str) -> Check:
    """Copy a user by export and import; the import is sent twice."""
    word = new_word()
    source, copy = f"source-{word}", f"copy-{word}"
    await teller.save(source, f"keeps {word} one", f"keeps {word} two", f"keeps {word} three")
    document = (await teller.client.send("GET", f"/v1/users/{source}/export")).json()
    for _ in range(2):
        await teller.write("import", "POST", f"/v1/users/{copy}/import", document)
    numbers = ("one", "two", "three")
    return lambda: teller.compare("imported", copy, word, *(f"keeps {word} {number}" for number in numbers))


async def tell_forget(teller: Teller, user: str) -> Check:
    """Forget a user with statements and messages; nothing of them may come back."""
    word = new_word()
    gone = f"gone-{uuid.uuid4().hex}"
    await teller.save(gone, f"keeps {word} one")
    turns = [{"role": "user", "content": f"I keep {word}"}]
    await teller.write("messages", "POST", f"/v1/users/{gone}/messages", {"session_id": "s", "messages": turns})
    erased = await teller.write("forget", "DELETE", f"/v1/users/{gone}", seconds=FORGET_SECONDS)

    async def check() -> list[str]:
        export = (await teller.client.send("GET", f"/v1/users/{gone}/export")).text
        found = await teller.compare("forgotten", gone, word)
        if word in export:
            found.append(f"the export of the forgotten user {gone} contains {word}")
        return found + ([] if erased["residue"] == 0 else [f"residue {json.dumps(erased)} of {gone}"])

    return check


async def _fail(*what: str) -> list[str]:
    return [*what]


STORIES: tuple[Story, ...] = (
    tell_saves,
    tell_reads,
    tell_messages,
    tell_order,
    tell_change_of_value,
    tell_merge,
    tell_consolidation,
    tell_hard_delete,
    tell_import,
    tell_forget,
)
"""Every kind of write."""
