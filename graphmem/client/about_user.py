"""Methods about one user, who comes first or by name: `search("mara", "tea")`, `search("tea", user_id="mara")`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class UserMethod(Protocol[P, T_co]):
    """A method whose first argument is the user; with `user_id=` the other arguments keep their order."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    @overload
    def __call__(self, *args: Any, user_id: str, **kwargs: Any) -> T_co: ...


class _UnboundUserMethod(Protocol[P, T_co]):
    def __get__(self, client: Any, owner: type) -> UserMethod[P, T_co]: ...


def about_user(method: Callable[Concatenate[Any, P], T]) -> _UnboundUserMethod[P, T]:
    """Let the user of a method, its first parameter, be named beside other arguments by position."""

    @functools.wraps(method)
    def with_user(client: Any, /, *args: Any, **kwargs: Any) -> Any:
        if args and "user_id" in kwargs:
            return method(client, kwargs.pop("user_id"), *args, **kwargs)
        return method(client, *args, **kwargs)

    return cast("_UnboundUserMethod[P, T]", with_user)
