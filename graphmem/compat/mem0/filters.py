"""Filters of mem0: whose memories they ask for, and whether a memory matches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from itertools import product
from typing import Any

from graphmem.conversations.session import read_timestamp
from graphmem.runtime.field_types import check_filled_in

ID_FIELDS = ("user_id", "agent_id", "run_id", "app_id")
"""The ids that say whose a memory is; a search names at least one."""

MISSING_IDS = (
    "filters must contain at least one of: user_id, agent_id, run_id, app_id. Example: filters={'user_id': 'u1'}"
)

KEYWORDS = "keywords"
"""The field of a filter that stands for the words of a memory, in any case."""

_ITEM_FIELDS = {*ID_FIELDS, "id", "memory", "actor_id", "role", "created_at", "updated_at", "categories"} | {KEYWORDS}
"""What is a field of a result; every other key of a filter is one of its metadata."""

_TIME_FIELDS = {"created_at", "updated_at"}

Filters = Mapping[str, Any]
Item = Mapping[str, Any]
"""A memory in the form of mem0's results."""


@dataclass(frozen=True, slots=True)
class OwnerIds:
    """The ids that a memory is stored with; the first that is given names the user of graphmem."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    app_id: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> OwnerIds:
        """Return the ids among other arguments; raise ValueError for one that is empty or has white space."""
        return cls(**{name: check_id(given[name], name) for name in ID_FIELDS if given.get(name) is not None})

    @property
    def owner(self) -> str | None:
        """The user of graphmem: `user_id`, else another id with its kind before it; None without any."""
        if self.user_id:
            return self.user_id
        kinds = (("agent", self.agent_id), ("run", self.run_id), ("app", self.app_id))
        return next((f"{kind}:{id}" for kind, id in kinds if id), None)

    @property
    def is_owner_alone(self) -> bool:
        """Whether there is no id beside the one that names the user."""
        return sum(map(bool, asdict(self).values())) == 1

    @property
    def labels(self) -> dict[str, str]:
        """The ids beside the user, which are kept as metadata."""
        return {name: id for name, id in asdict(self).items() if id and name != "user_id"}


def split_owner(owner: str) -> tuple[str, str]:
    """Return the kind and the id of a user of graphmem: `user`, `agent`, `run` or `app`."""
    kind, colon, id = owner.partition(":")
    return (kind, id) if colon and f"{kind}_id" in ID_FIELDS[1:] else ("user", owner)


def check_id(value: object, name: str) -> str:
    """Return an id without white space around it.

    Raises ValueError for one that is empty, has white space inside or is a placeholder that was not filled in.
    """
    text = str(value).strip()
    if not text or any(char.isspace() for char in text):
        raise ValueError(f"Invalid {name}: it must not be empty or contain white space.")
    try:
        return check_filled_in(text)
    except ValueError as error:
        raise ValueError(f"Invalid {name}: it {error}.") from None


def find_owners(filters: Filters) -> list[str]:
    """Return the users of graphmem whose memories a filter may match; raise ValueError for one that names none."""
    owners = [OwnerIds.of(ids).owner for ids in _alternatives(filters)]
    named = [owner for owner in owners if owner]
    if not named or len(named) < len(owners):
        raise ValueError(MISSING_IDS)
    return list(dict.fromkeys(named))


def _alternatives(filters: Filters) -> list[dict[str, Any]]:
    """Return the ids of each alternative that a filter allows."""
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
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or any(id in (None, "*") for id in listed):
        raise ValueError(f"{key} must name ids: graphmem cannot read all users at once.")
    return list(listed)


def plain_metadata(filters: Filters) -> dict[str, str | float | bool]:
    """Return the conditions that the server can check: the equality of metadata and of ids beside the user."""
    checked = {key: value for key, value in filters.items() if key not in _ITEM_FIELDS or key in ID_FIELDS[1:]}
    return {key: value for key, value in checked.items() if isinstance(value, str | int | float) and value != "*"}


def is_plain(filters: Filters) -> bool:
    """Return whether the server can check all conditions of a filter."""
    return set(filters) <= {"user_id", *plain_metadata(filters)} and isinstance(filters.get("user_id", ""), str)


def matches(filters: Filters, item: Item) -> bool:
    """Return whether a memory matches; raise ValueError for an operator that mem0 does not have."""
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
    if isinstance(condition, list | tuple):
        condition = {"in": condition}
    elif not isinstance(condition, Mapping):
        condition = {"eq": condition}
    if key in _TIME_FIELDS and value is not None:
        value = _read_time(value)
        condition = {operator: _read_operand(operand) for operator, operand in condition.items()}
    return all(_compare(operator, value, operand) for operator, operand in condition.items())


def _read_operand(operand: Any) -> Any:
    return [*map(_read_time, operand)] if isinstance(operand, list | tuple) else _read_time(operand)


def _read_time(given: Any) -> datetime:
    """Return a time, a day or seconds since 1970 as a time, in UTC where there is no offset; raise ValueError else."""
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
    except TypeError:  # values that cannot be compared, such as a text and a number
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
"""What a value and an operand are compared by."""
