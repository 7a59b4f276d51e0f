"""The validated call of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

P_co = TypeVar("P_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Request(Generic[P_co, T_co]):
    """A validated call with parameters of type `P` and a result of type `T`.

    `user_id` and `resource_id` name the user and the resource that the operation is about; they are empty where an
    operation has none.
    """

    parameters: P_co
    user_id: str = ""
    resource_id: str = ""
