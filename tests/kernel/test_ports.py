"""The port stays small: each operation more is one more that every store must keep."""

import inspect

from postroom.kernel.ports import Reads, Store, Transaction

MOST_OPERATIONS = 60


def operations(*protocols: type) -> set[str]:
    return {
        f"{protocol.__name__}.{name}"
        for protocol in protocols
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def test_a_store_has_at_most_sixty_operations() -> None:
    found = operations(Reads, Transaction, Store)
    assert len(found) <= MOST_OPERATIONS, sorted(found)


def test_nothing_is_declared_twice() -> None:
    names = [name.partition(".")[2] for name in operations(Reads, Transaction, Store)]
    assert len(names) == len(set(names))
