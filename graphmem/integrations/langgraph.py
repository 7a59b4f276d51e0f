"""A LangGraph store whose items are memories, so that earlier values stay readable.

An item is one memory whose subject is an entity named by namespace and key: `put` adds a version, `delete` ends it, and
`GraphmemStore.as_of` reads the store as of a time. A value that cannot be stored, such as a secret, raises
InvalidInput.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from graphmem.integrations.agent_memory import require_stored
from graphmem.memories.memory import MAX_CONTENT_LENGTH, Memory
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput
from graphmem.runtime.field_types import name_key

if TYPE_CHECKING:
    from graphmem.client import AsyncClient, Client

T = TypeVar("T")

STORE_TAG = "langgraph"
"""The tag of every memory that is a store item."""

PAGE_SIZE = 200
"""Memories per page of a list."""

MAX_SEARCH_RESULTS = 100
"""Most items ranked by a search; others follow without a score, the latest first."""

_METADATA_KEY = "langgraph"
_MAX_READABLE_NAME = 200


@dataclass(frozen=True, slots=True)
class _ClientCall:
    """A client method call, to be made by the caller of the generator."""

    method: str
    user_id: str | None
    """None for a method that is about no user."""
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] | None = None


Calls = Generator[_ClientCall, Any, T]
"""The client calls of an operation: takes their results, returns the operation's; serves both kinds of client."""


class GraphmemStore(BaseStore):
    """A LangGraph store whose items are memories of graphmem.

    `client` answers the synchronous methods, `async_client` the asynchronous ones; `GraphMemory` is an asynchronous
    client in the same process. The items belong to the user `user_id` or, with `user_label`, to the user named by the
    label at that position of the namespace: with 1, ("memories", "ada") belongs to ada.
    """

    supports_ttl = False

    def __init__(
        self,
        client: Client | None = None,
        *,
        async_client: AsyncClient | None = None,
        user_id: str | None = None,
        user_label: int | None = None,
    ) -> None:
        if (user_id is None) == (user_label is None):
            raise ValueError("Give user_id, or user_label: the position of the user's id in a namespace.")
        self._client = client
        self._async_client = async_client
        self._user_id = user_id
        self._user_label = user_label
        self._as_of: dict[str, datetime] = {}

    def as_of(self, time: datetime) -> Self:
        """Return this store as it was at a time with an offset; it cannot be written to."""
        view = type(self)(
            self._client, async_client=self._async_client, user_id=self._user_id, user_label=self._user_label
        )
        view._as_of = {"valid_as_of": time, "known_as_of": time}
        return view

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in order; if several put the same key, the last one counts.

        Raises InvalidInput, Forbidden or Conflict, once all are executed, for a value that is not stored.
        """
        if self._client is None:
            raise RuntimeError("This store has no synchronous client: pass `client`, or use abatch, aget, asearch, ….")
        refused = _RefusedOperations()
        results: list[Result] = []
        for op, calls in self._plan(ops):
            with refused.noted(op):
                results.append(_run(self._client, calls))
        refused.raise_if_any()
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in order; if several put the same key, the last one counts.

        Raises InvalidInput, Forbidden or Conflict, once all are executed, for a value that is not stored.
        """
        if self._async_client is None:
            raise RuntimeError("This store has no asynchronous client: pass `async_client`, or use batch, get, ….")
        refused = _RefusedOperations()
        results: list[Result] = []
        for op, calls in self._plan(ops):
            with refused.noted(op):
                results.append(await _arun(self._async_client, calls))
        refused.raise_if_any()
        return results

    def _plan(self, ops: Iterable[Op]) -> list[tuple[Op, Calls[Result]]]:
        return [(op, self._plan_one(op)) for op in ops]

    def _plan_one(self, op: Op) -> Calls[Result]:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, PutOp):
            return self._put(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._list_namespaces(op)
        raise TypeError(f"{type(op).__name__} is not an operation of a store.")

    # Operations

    def _get(self, op: GetOp) -> Calls[Item | None]:
        memory = yield from self._find(op.namespace, op.key)
        return _to_item(memory) if memory else None

    def _put(self, op: PutOp) -> Calls[None]:
        if self._as_of:
            raise RuntimeError("A store as of an earlier time cannot be written to.")
        user_id = self._user_of(op.namespace)
        memory = yield from self._find(op.namespace, op.key)
        if op.value is None:
            if memory:
                yield _ClientCall("delete", user_id, (memory.id,))
        elif memory is None:
            results = yield _ClientCall("add", user_id, (_to_statement(op),))
            require_stored(results, [f"the item {op.key!r}"])
        elif _stored(memory).get("value") != op.value or memory.content != _to_text(op).strip():
            changes = {"content": _to_text(op), "metadata": _to_metadata(op)}
            yield _ClientCall("update", user_id, (memory.id,), changes)

    def _search(self, op: SearchOp) -> Calls[list[SearchItem]]:
        user_id = self._user_of(op.namespace_prefix)
        tags = [_tag_of(op.namespace_prefix)]
        if op.query:
            options = {"limit": MAX_SEARCH_RESULTS, "tags": {"all": tags}, "spaces": "none", **self._as_of}
            response = yield _ClientCall("search", user_id, (op.query,), options)
            ranked = [(hit.memory, hit.score) for hit in response.results]
            matching = _select(ranked, op)
            if len(ranked) < MAX_SEARCH_RESULTS or len(matching) >= op.offset + op.limit:
                return matching[op.offset : op.offset + op.limit]
        else:
            ranked, matching = [], []
        known = {memory.id for memory, _ in ranked}
        memories = yield from self._list(user_id, tags)
        matching += _select([(memory, None) for memory in memories if memory.id not in known], op)
        return matching[op.offset : op.offset + op.limit]

    def _list_namespaces(self, op: ListNamespacesOp) -> Calls[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        prefixes = [condition.path for condition in conditions if condition.match_type == "prefix"]
        users = yield from self._users_of(max(prefixes, key=len, default=()))
        namespaces: set[tuple[str, ...]] = set()
        for user_id in users:
            namespaces.update(map(_namespace_of, (yield from self._list(user_id, [_tag_of(())]))))
        matching = {
            namespace[: op.max_depth] for namespace in namespaces if all(_fits(namespace, one) for one in conditions)
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    # Parts

    def _find(self, namespace: tuple[str, ...], key: str) -> Calls[Memory | None]:
        """Return the current memory of an item."""
        options = {
            "entity": _subject_name(namespace, key),
            "tag": [STORE_TAG],
            "limit": PAGE_SIZE,
            "spaces": "none",
            **self._as_of,
        }
        page = yield _ClientCall("memories", self._user_of(namespace), (), options)
        same = (memory for memory in page.items if (_namespace_of(memory), _key_of(memory)) == (namespace, key))
        return next(same, None)

    def _list(self, user_id: str, tags: list[str]) -> Calls[list[Memory]]:
        """Return all items with some tags, latest first."""
        options = {"tag": tags, "spaces": "none", **self._as_of}
        return (yield from self._list_pages("memories", user_id, options))

    def _list_pages(self, method: str, user_id: str | None, options: Mapping[str, Any]) -> Calls[list[Any]]:
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = yield _ClientCall(method, user_id, (), {**options, "limit": PAGE_SIZE, "cursor": cursor})
            items += page.items
            if not (cursor := page.next_cursor):
                return items

    def _users_of(self, prefix: tuple[str, ...]) -> Calls[list[str]]:
        """Return the user in a namespace prefix; without one, all users that the key may list."""
        label = self._user_label
        if label is None or (label < len(prefix) and prefix[label] != "*"):
            return [self._user_of(prefix)]
        users = yield from self._list_pages("users", None, {})
        return [user.user_id for user in users]

    def _user_of(self, namespace: Sequence[str]) -> str:
        if self._user_id is not None:
            return self._user_id
        label = cast("int", self._user_label)
        if label >= len(namespace) or namespace[label] == "*":
            raise InvalidNamespaceError(f"The namespace {tuple(namespace)} has no label {label}, which names the user.")
        return namespace[label]


class _RefusedOperations:
    """The operations of a batch that were refused: one of them costs no other."""

    def __init__(self) -> None:
        self._errors: list[tuple[Op, InvalidInput | Forbidden | Conflict]] = []

    @contextmanager
    def noted(self, op: Op) -> Iterator[None]:
        """Return a block that executes an operation."""
        try:
            yield
        except (InvalidInput, Forbidden, Conflict) as error:
            self._errors.append((op, error))

    def raise_if_any(self) -> None:
        """Raise the error of the only operation that was refused, or one of the same kind with all reasons."""
        if not self._errors:
            return
        first = self._errors[0][1]
        if len(self._errors) == 1:
            raise first
        reasons = (f"The item {getattr(op, 'key', '')!r}: {error.detail}" for op, error in self._errors)
        raise type(first)(" ".join(reasons))


def _run(client: Client, calls: Calls[T]) -> T:
    try:
        call = next(calls)
        while True:
            call = calls.send(_bind(client, call)())
    except StopIteration as end:
        return cast("T", end.value)


async def _arun(client: AsyncClient, calls: Calls[T]) -> T:
    try:
        call = next(calls)
        while True:
            call = calls.send(await _bind(client, call)())
    except StopIteration as end:
        return cast("T", end.value)


def _bind(client: object, call: _ClientCall) -> Callable[[], Any]:
    method = getattr(client, call.method)
    user = () if call.user_id is None else (call.user_id,)
    return lambda: method(*user, *call.arguments, **(call.options or {}))


def _to_statement(op: PutOp) -> dict[str, Any]:
    """Return the memory of an item, as an argument of `add`."""
    return {
        "content": _to_text(op),
        "subject": {"name": _subject_name(op.namespace, op.key), "type": "StoreItem"},
        "predicate": "HAS_VALUE",
        "single_valued": True,
        "scope": "episodic",
        "tags": [STORE_TAG, *(_tag_of(op.namespace[:length]) for length in range(len(op.namespace) + 1))],
        "metadata": _to_metadata(op),
    }


def _to_metadata(op: PutOp) -> dict[str, Any]:
    return {_METADATA_KEY: {"namespace": list(op.namespace), "key": op.key, "value": op.value}}


def _to_text(op: PutOp) -> str:
    """Return the searchable text of a value: the fields named by `index`, by default all."""
    value = cast("dict[str, Any]", op.value)
    if op.index is False:
        return op.key
    paths = op.index or ["$"]
    texts = [text for path in paths for text in (get_text_at_path(value, path) if path != "$" else _texts_of(value))]
    return "\n".join(text for text in texts if text.strip())[:MAX_CONTENT_LENGTH] or op.key


def _texts_of(value: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {field if isinstance(field, str) else json.dumps(field, ensure_ascii=False)}"
        for name, field in value.items()
    ]


def _subject_name(namespace: Sequence[str], key: str) -> str:
    """Return a name unique to this item: readable, with a digest where the readable part is not unique."""
    readable = "/".join([*namespace, key])
    is_unique = not any("/" in part for part in (*namespace, key)) and name_key(readable) == readable
    if is_unique and len(readable) <= _MAX_READABLE_NAME:
        return readable
    return f"{readable[:_MAX_READABLE_NAME]} {_digest([*namespace, key])}"


def _tag_of(prefix: Sequence[str]) -> str:
    """Return the tag of all items whose namespace begins with a prefix."""
    return f"{STORE_TAG}:{_digest(list(prefix))}" if prefix else STORE_TAG


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _stored(memory: Memory) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", memory.metadata.get(_METADATA_KEY, {}))


def _namespace_of(memory: Memory) -> tuple[str, ...]:
    return tuple(_stored(memory).get("namespace", ()))


def _key_of(memory: Memory) -> str:
    return str(_stored(memory).get("key", ""))


def _to_item(memory: Memory) -> Item:
    return Item(
        value=dict(_stored(memory)["value"]),
        key=_key_of(memory),
        namespace=_namespace_of(memory),
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )


def _select(ranked: Iterable[tuple[Memory, float | None]], op: SearchOp) -> list[SearchItem]:
    """Return the items that the filter of a search selects, in their order."""
    items = (_to_search_item(memory, score) for memory, score in ranked)
    return [item for item in items if _matches(item.value, op.filter or {})]


def _to_search_item(memory: Memory, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=_namespace_of(memory),
        key=_key_of(memory),
        value=dict(_stored(memory)["value"]),
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        score=score,
    )


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda value, other: bool(value == other),
    "$ne": lambda value, other: bool(value != other),
    "$gt": lambda value, other: bool(value > other),
    "$gte": lambda value, other: bool(value >= other),
    "$lt": lambda value, other: bool(value < other),
    "$lte": lambda value, other: bool(value <= other),
}


def _matches(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Return whether the fields of a value match a filter; comparisons with values of other types do not match."""
    return all(_fulfils(value.get(name), condition) for name, condition in conditions.items())


def _fulfils(value: Any, condition: Any) -> bool:
    if not (isinstance(condition, dict) and any(key.startswith("$") for key in condition)):
        return bool(value == condition)
    try:
        return all(_COMPARISONS[operator](value, other) for operator, other in condition.items())
    except KeyError as error:
        raise ValueError(f"The filter has no operator {error}: use {', '.join(_COMPARISONS)}.") from None
    except TypeError:
        return False


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(expected in ("*", label) for label, expected in zip(part, path, strict=True))
