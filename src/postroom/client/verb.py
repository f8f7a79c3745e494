"""A method that both clients share: it says which call is sent, and each client sends it in its own way."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from postroom.client.calls import Call

if TYPE_CHECKING:
    from postroom.client.asynchronous import AsyncClient
    from postroom.client.synchronous import Client

P = ParamSpec("P")
T = TypeVar("T")


class Verb(Generic[P, T]):
    """Decorates a function that makes the call. The synchronous client returns the answer, the asynchronous
    one a coroutine of it."""

    def __init__(self, make: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._make = make
        functools.update_wrapper(self, make)  # type: ignore[arg-type]

    @overload
    def __get__(self, client: None, owner: Any = None) -> Callable[Concatenate[Any, P], Call[T]]: ...

    @overload
    def __get__(self, client: "Client", owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: "AsyncClient", owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Any, owner: Any = None) -> Any:
        if client is None:
            return self._make

        @functools.wraps(self._make)
        def send(*args: P.args, **options: P.kwargs) -> Any:
            return client.send(self._make(client, *args, **options))

        @functools.wraps(self._make)
        async def send_later(*args: P.args, **options: P.kwargs) -> Any:
            return await send(*args, **options)

        return send_later if inspect.iscoroutinefunction(client.send) else send
