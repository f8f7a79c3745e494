"""Queues whose bodies have a type: checked when published, and made again when claimed.

A message whose body does not fit the type is a dead letter, never handed to a handler.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from postroom.errors import ClaimLost, InvalidField
from postroom.kernel.model import Message, Receipt
from postroom.runtime.command_builder import PublishOptions
from postroom.runtime.workers import Reject, WorkerOptions

if TYPE_CHECKING:
    from postroom.runtime.room import Room
    from postroom.runtime.sync_room import SyncRoom

T = TypeVar("T")
log = logging.getLogger("postroom.workers")
BODY = "body"


class BodyType(Generic[T]):
    """Between a type's objects and the plain data that a store keeps: msgspec's, dataclasses, pydantic's."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        # Asked of the type itself, so that pydantic is imported only by who uses it.
        self._model: Any = kind if hasattr(kind, "model_validate") else None

    @property
    def name(self) -> str:
        return getattr(self._kind, "__name__", str(self._kind))

    def encode(self, value: T) -> Any:
        """Plain data, which this type would read again."""
        try:
            if self._model is not None and isinstance(value, self._model):
                plain = self._model.model_dump(value, mode="json")
            else:
                plain = msgspec.to_builtins(value)
        except (TypeError, ValueError) as error:
            raise InvalidField(BODY, f"is not {self.name}: {_flat(error)}") from None
        self.decode(plain)
        return plain

    def decode(self, body: Any) -> T:
        try:
            if self._model is not None:
                return self._model.model_validate(body)
            return msgspec.convert(body, self._kind)
        except ValueError as error:  # both libraries' refusals are ValueErrors
            raise InvalidField(BODY, f"is not {self.name}: {_flat(error)}") from None

    def read(self, message: Message[Any]) -> Message[T]:
        return msgspec.structs.replace(message, body=self.decode(message.body))


class TypedQueue(Generic[T]):
    """A queue of an open `Room`, all of whose bodies are of one type. Made by `room.queue(name, type)`.

    >>> import msgspec, postroom
    >>> class Order(msgspec.Struct):
    ...     total: int
    >>> async with postroom.open("memory://") as shop:
    ...     _ = await shop.create_queue("orders")
    ...     orders = shop.queue("orders", Order)
    ...     _ = await orders.publish(Order(total=12))
    ...     [message] = await orders.claim()
    ...     print(message.body.total)
    12
    """

    def __init__(self, room: "Room", queue: str, kind: type[T]) -> None:
        self._room = room
        self._queue = queue
        self._body = BodyType(kind)

    async def publish(self, body: T, **options: Unpack[PublishOptions]) -> Receipt:
        """As `Room.publish`; a body that is not of the type is refused."""
        return await self._room.publish(self._queue, self._body.encode(body), **options)

    async def publish_many(self, bodies: Iterable[T], **options: Unpack[PublishOptions]) -> list[Receipt]:
        """As `Room.publish_many`: all or none."""
        return await self._room.publish_many(
            self._queue, [self._body.encode(body) for body in bodies], **options
        )

    async def claim(
        self, *, limit: int | None = 1, wait: float = 0, lease: float | None = None
    ) -> list[Message[T]]:
        """As `Room.claim`. Bodies that do not fit the type become dead letters and are left out."""
        found: list[Message[T]] = []
        for message in await self._room.claim(self._queue, limit=limit, wait=wait, lease=lease):
            try:
                found.append(self._body.read(message))
            except InvalidField as error:
                log.warning("message %s is a dead letter: %s", message.id, error)
                try:
                    await self._room.fail(message, str(error), kind=BODY, retry=False)
                except ClaimLost as lost:
                    log.warning("%s", lost)
        return found

    def worker(
        self, **options: Unpack[WorkerOptions]
    ) -> Callable[[Callable[[Message[T]], Awaitable[Any]]], Callable[[Message[T]], Awaitable[Any]]]:
        """As `Room.worker`; the handler is given `Message`s whose bodies are of the type."""

        def decorate(
            handler: Callable[[Message[T]], Awaitable[Any]],
        ) -> Callable[[Message[T]], Awaitable[Any]]:
            async def handle(message: Message[Any]) -> Any:
                return await handler(_read_or_reject(self._body, message))

            self._room.worker(self._queue, **options)(handle)
            return handler

        return decorate


class SyncTypedQueue(Generic[T]):
    """A queue of an open `SyncRoom`, all of whose bodies are of one type.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     total: int
    >>> orders = room.queue("orders", Order)
    >>> orders.publish(Order(total=12)).created
    True
    >>> [message] = orders.claim()
    >>> message.body
    Order(total=12)
    """

    def __init__(self, room: "SyncRoom", queue: str, kind: type[T]) -> None:
        self._room = room
        self._queue = queue
        self._body = BodyType(kind)

    def publish(self, body: T, **options: Unpack[PublishOptions]) -> Receipt:
        """As `SyncRoom.publish`; a body that is not of the type is refused."""
        return self._room.publish(self._queue, self._body.encode(body), **options)

    def publish_many(self, bodies: Iterable[T], **options: Unpack[PublishOptions]) -> list[Receipt]:
        """As `SyncRoom.publish_many`: all or none."""
        return self._room.publish_many(self._queue, [self._body.encode(body) for body in bodies], **options)

    def claim(
        self, *, limit: int | None = 1, wait: float = 0, lease: float | None = None
    ) -> list[Message[T]]:
        """As `SyncRoom.claim`. Bodies that do not fit the type become dead letters and are left out."""
        found: list[Message[T]] = []
        for message in self._room.claim(self._queue, limit=limit, wait=wait, lease=lease):
            try:
                found.append(self._body.read(message))
            except InvalidField as error:
                log.warning("message %s is a dead letter: %s", message.id, error)
                try:
                    self._room.fail(message, str(error), kind=BODY, retry=False)
                except ClaimLost as lost:
                    log.warning("%s", lost)
        return found

    def worker(
        self, **options: Unpack[WorkerOptions]
    ) -> Callable[[Callable[[Message[T]], Any]], Callable[[Message[T]], Any]]:
        """As `SyncRoom.worker`; the handler is given `Message`s whose bodies are of the type."""

        def decorate(handler: Callable[[Message[T]], Any]) -> Callable[[Message[T]], Any]:
            self._room.worker(self._queue, **options)(
                lambda message: handler(_read_or_reject(self._body, message))
            )
            return handler

        return decorate


def _read_or_reject(body: BodyType[T], message: Message[Any]) -> Message[T]:
    try:
        return body.read(message)
    except InvalidField as error:
        raise Reject(str(error)) from None


def _flat(error: Exception) -> str:
    """One line: pydantic says much, and the message's record of its failure is read in lists."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    return "; ".join(f"{'.'.join(map(str, each['loc']))} {each['msg']}".strip() for each in errors())
