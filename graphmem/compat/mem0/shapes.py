"""Memories, histories, messages and filters in mem0's form. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import product
from typing import Any

from graphmem.conversations.session import read_timestamp
from graphmem.memories.memory import Memory, MemoryStatus, MemoryVersion
from graphmem.runtime.field_types import check_identity

ID_FIELDS = ("user_id", "agent_id", "run_id", "app_id")
"""The ids that name the owner of a memory; a search needs at least one."""

MISSING_IDS = (
    "filters must contain at least one of: user_id, agent_id, run_id, app_id. Example: filters={'user_id': 'u1'}"
)

KEYWORDS = "keywords"
"""The filter field for words of a memory, regardless of case."""

_ITEM_FIELDS = {*ID_FIELDS, "id", "memory", "actor_id", "role", "created_at", "updated_at", "categories"} | {KEYWORDS}
"""Fields of a result; any other filter key refers to its metadata."""

_TIME_FIELDS = {"created_at", "updated_at"}

Filters = Mapping[str, Any]
Item = Mapping[str, Any]
"""A memory in the form of a mem0 result."""


@dataclass(frozen=True, slots=True)
class OwnerIds:
    """The ids of a memory; the first one given becomes the graphmem user."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    app_id: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> OwnerIds:
        """Return the ids among other arguments; raise ValueError if one is empty or has white space."""
        return cls(**{name: check_id(given[name], name) for name in ID_FIELDS if given.get(name) is not None})

    @property
    def owner(self) -> str | None:
        """The graphmem user: `user_id`, else another id prefixed with its kind; None without any."""
        if self.user_id:
            return self.user_id
        kinds = (("agent", self.agent_id), ("run", self.run_id), ("app", self.app_id))
        return next((f"{kind}:{id}" for kind, id in kinds if id), None)

    @property
    def is_owner_alone(self) -> bool:
        """Whether only the id of the user is given."""
        return sum(map(bool, asdict(self).values())) == 1

    @property
    def labels(self) -> dict[str, str]:
        """The ids besides `user_id`, kept as metadata."""
        return {name: id for name, id in asdict(self).items() if id and name != "user_id"}


def split_owner(owner: str) -> tuple[str, str]:
    """Return the kind and the id of a graphmem user; the kind is `user`, `agent`, `run` or `app`."""
    kind, colon, id = owner.partition(":")
    return (kind, id) if colon and f"{kind}_id" in ID_FIELDS[1:] else ("user", owner)


def check_id(value: object, name: str) -> str:
    """Return an id stripped of white space.

    Raises ValueError if it is empty, has white space inside or is an unfilled placeholder.
    """
    text = str(value).strip()
    if not text or any(char.isspace() for char in text):
        raise ValueError(f"Invalid {name}: it must not be empty or contain white space.")
    try:
        return check_identity(text)
    except ValueError as error:
        raise ValueError(f"Invalid {name}: it {error}.") from None


def find_owners(filters: Filters) -> list[str]:
    """Return the graphmem users whose memories may match a filter; raise ValueError if it names none."""
    owners = [OwnerIds.of(ids).owner for ids in _alternatives(filters)]
    named = [owner for owner in owners if owner]
    if not named or len(named) < len(owners):
        raise ValueError(MISSING_IDS)
    return list(dict.fromkeys(named))


def _alternatives(filters: Filters) -> list[dict[str, Any]]:
    """Return the ids in each alternative of a filter."""
    found: list[dict[str, Any]] = [{}]
    for key, value in filters.items():
        if key in ID_FIELDS:
            options = [{key: id} for id in _listed_ids(key, value)]
        elif key == "AND":
            options = _merge(*map(_alternatives, value))
        elif key == "OR":
            options = [ids for branch in value for ids in _alternatives(branch)]
        else:
            continue
        found = _merge(found, options)
    return found


def _merge(*parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: id for ids in chosen for key, id in ids.items()} for chosen in product(*parts)]


def _listed_ids(key: str, value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = value.get("in", value.get("eq"))
    listed = value if isinstance(value, (list, tuple)) else [value]
    if not listed or any(id in (None, "*") for id in listed):
        raise ValueError(f"{key} must name ids: graphmem cannot read all users at once.")
    return list(listed)


def plain_metadata(filters: Filters) -> dict[str, str | float | bool]:
    """Return the conditions that the server can check: equality of metadata and of ids other than `user_id`."""
    checked = {key: value for key, value in filters.items() if key not in _ITEM_FIELDS or key in ID_FIELDS[1:]}
    return {key: value for key, value in checked.items() if isinstance(value, str | int | float) and value != "*"}


def is_plain(filters: Filters) -> bool:
    """Return whether the server can check all conditions of a filter."""
    return set(filters) <= {"user_id", *plain_metadata(filters)} and isinstance(filters.get("user_id", ""), str)


def matches(filters: Filters, item: Item) -> bool:
    """Return whether a memory matches; raise ValueError for an operator unknown to mem0."""
    return all(_matches_condition(key, condition, item) for key, condition in filters.items())


def _matches_condition(key: str, condition: Any, item: Item) -> bool:
    if key == "AND":
        return all(matches(branch, item) for branch in condition)
    if key == "OR":
        return any(matches(branch, item) for branch in condition)
    if key == "NOT":
        branches = condition if isinstance(condition, list) else [condition]
        return not any(matches(branch, item) for branch in branches)
    if key == "metadata" and isinstance(condition, Mapping):
        return all(_matches_condition(name, wanted, item) for name, wanted in condition.items())
    if key == KEYWORDS:
        return _matches_keywords(condition, item)
    value = item.get(key) if key in _ITEM_FIELDS else (item.get("metadata") or {}).get(key)
    if condition == "*":
        return value is not None
    if isinstance(condition, (list, tuple)):
        condition = {"in": condition}
    elif not isinstance(condition, Mapping):
        condition = {"eq": condition}
    if key in _TIME_FIELDS and value is not None:
        value = _read_time(value)
        condition = {operator: _read_operand(operand) for operator, operand in condition.items()}
    return all(_compare(operator, value, operand) for operator, operand in condition.items())


def _read_operand(operand: Any) -> Any:
    return [*map(_read_time, operand)] if isinstance(operand, (list, tuple)) else _read_time(operand)


def _read_time(given: Any) -> datetime:
    """Return a time, a date or seconds since 1970 as a time, in UTC if without an offset, or raise ValueError."""
    value = read_timestamp(given)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                f"The filter contains no time: {given!r}. Give one such as 2026-05-01T12:00:00Z."
            ) from None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError(f"The filter contains no time: {given!r}. Give one such as 2026-05-01T12:00:00Z.")
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _matches_keywords(condition: Any, item: Item) -> bool:
    operands = condition.values() if isinstance(condition, Mapping) else [condition]
    if isinstance(condition, Mapping) and not condition.keys() <= {"contains", "icontains"}:
        raise ValueError("The filter `keywords` takes a text, `contains` or `icontains`.")
    return all(_OPERATORS["icontains"](item["memory"], operand) for operand in operands)


def _compare(operator: str, value: Any, operand: Any) -> bool:
    if operator not in _OPERATORS:
        raise ValueError(f"Unsupported filter operator {operator!r}: use one of {', '.join(_OPERATORS)}.")
    try:
        return bool(_OPERATORS[operator](value, operand))
    except TypeError:  # values of types that cannot be compared, such as text and number
        return False


def _is_equal(value: Any, operand: Any) -> bool:
    return operand in value if isinstance(value, list) and not isinstance(operand, list) else bool(value == operand)


def _is_among(value: Any, operands: Iterable[Any]) -> bool:
    return any(_is_equal(value, operand) for operand in operands)


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _is_equal,
    "ne": lambda value, operand: not _is_equal(value, operand),
    "in": _is_among,
    "nin": lambda value, operands: not _is_among(value, operands),
    "gt": lambda value, operand: value > operand,
    "gte": lambda value, operand: value >= operand,
    "lt": lambda value, operand: value < operand,
    "lte": lambda value, operand: value <= operand,
    "contains": lambda value, operand: operand in value,
    "icontains": lambda value, operand: str(operand).casefold() in str(value).casefold(),
}
"""Comparison operators."""


LABELS = (*ID_FIELDS[1:], "actor_id", "role")
"""Metadata keys that mem0 shows as fields of a memory."""

_ONE_DAY = timedelta(days=1)


def make_id(owner: str, memory_id: str) -> str:
    """Return a memory id that includes the user, for callers that pass no user with it."""
    return f"{memory_id}@{owner}"


def parse_id(given: object) -> tuple[str, str]:
    """Return the user and the graphmem id in such an id; raise ValueError if it does not name the user."""
    memory_id, _, owner = str(given).partition("@")
    if not memory_id or not owner:
        raise ValueError(f"Invalid memory_id {given!r}: use the `id` of a result, which names the user after an @.")
    return owner, memory_id


def make_item(owner: str, memory: Memory) -> dict[str, Any]:
    """Return a memory in the form of mem0's lists."""
    metadata = dict(memory.metadata)
    labels = {name: metadata.pop(name) for name in LABELS if name in metadata}
    is_user = owner not in {f"{kind}:{labels.get(f'{kind}_id')}" for kind in ("agent", "run", "app")}
    item: dict[str, Any] = {
        "id": make_id(owner, memory.id),
        "memory": memory.content,
        "hash": hash_text(memory.content),
        "metadata": metadata or None,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        **({"user_id": owner} if is_user else {}),
        **labels,
    }
    if memory.expires_at:
        item["expiration_date"] = (memory.expires_at - _ONE_DAY).date().isoformat()
    if memory.tags:
        item["categories"] = list(memory.tags)
    return item


def hash_text(text: str) -> str:
    """Return mem0's hash for comparing texts."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def make_history(owner: str, versions: Sequence[MemoryVersion]) -> list[dict[str, Any]]:
    """Return the changes of a memory's text, oldest first, and its end."""
    rows: list[dict[str, Any]] = []
    before: str | None = None
    for version in versions:
        if version.content != before:
            event = "ADD" if before is None else "UPDATE"
            rows.append(_history_row(owner, version, event, before, version.content))
            before = version.content
    if versions and versions[-1].status is not MemoryStatus.ACTIVE:
        rows.append(_history_row(owner, versions[-1], "DELETE", before, None))
    return [{**row, "created_at": rows[0]["updated_at"]} for row in rows]


def _history_row(owner: str, version: MemoryVersion, event: str, old: str | None, new: str | None) -> dict[str, Any]:
    metadata = version.metadata
    at = (version.expired_at if event == "DELETE" else None) or version.created_at
    return {
        "id": f"{make_id(owner, version.id)}#{version.version}{'-end' if event == 'DELETE' else ''}",
        "memory_id": make_id(owner, version.id),
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "updated_at": at.isoformat(),
        "is_deleted": event == "DELETE",
        "actor_id": metadata.get("actor_id"),
        "role": metadata.get("role"),
    }


def parse_expiration(given: object) -> datetime | None:
    """Return the end of a memory's last day; raise ValueError for an invalid date."""
    if given is None:
        return None
    try:
        day = given if isinstance(given, date) else date.fromisoformat(str(given))
    except ValueError as error:
        raise ValueError("expiration_date must be a valid date in YYYY-MM-DD format.") from error
    last = day.date() if isinstance(day, datetime) else day
    return datetime.combine(last + _ONE_DAY, time(), UTC)


def parse_messages(given: object) -> list[Mapping[str, Any]]:
    """Return messages as a list; raise ValueError for anything but a text, a message or a list of messages."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, Mapping):
        return [given]
    if isinstance(given, list) and all(isinstance(message, Mapping) for message in given):
        return given
    raise ValueError("messages must be str, dict, or list[dict]")


def spoken_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of users, assistants and tools as text; system prompts state no facts.

    Messages without text, such as images, are left out.
    """
    spoken = []
    for message in messages:
        text = _text_of(message.get("content"))
        role = message.get("role", "user")
        if text and role not in ("system", "developer"):
            name = {"name": message["name"]} if message.get("name") else {}
            spoken.append({"role": role, "content": text, **name})
    return spoken


def _text_of(content: object) -> str:
    if isinstance(content, list):
        texts = (part.get("text", "") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str) and text.strip())
    return content if isinstance(content, str) and content.strip() else ""
