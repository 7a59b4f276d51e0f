"""The validated call of an operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
P_co = TypeVar("P_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request(Generic[P_co, T_co]):
    """A validated call with parameters of type `P` and a result of type `T`.

    `user_id` and `resource_id` name the user and the resource that the operation is about; they are empty where an
    operation has none.
    """

    parameters: P_co
    user_id: str = ""
    resource_id: str = ""


class OperationMethod(Protocol[P, T_co]):
    """A method made from an operation: the user comes first, `search("mara", "tea")`, or by name.

    With `user_id=` the other arguments keep their order: `search("tea", user_id="mara")`.
    """

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    @overload
    def __call__(self, *args: Any, user_id: str, **kwargs: Any) -> T_co: ...


def accept_user_by_name(operation: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call an operation whose first parameter is the user; `user_id=` may stand beside other arguments by position."""
    if args and "user_id" in kwargs and is_about_user(operation):
        rest = {name: value for name, value in kwargs.items() if name != "user_id"}
        return operation(kwargs["user_id"], *args, **rest)
    return operation(*args, **kwargs)


def is_about_user(operation: Callable[..., Any]) -> bool:
    """Return whether the first parameter of an operation is the user."""
    return operation.__code__.co_varnames[:1] == ("user_id",)
