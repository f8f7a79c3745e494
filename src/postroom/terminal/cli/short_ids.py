"""Long ids by how they begin, as people type them."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from postroom.services.errors import NoSuchThing
from postroom.terminal.cli.errors import Unclear

T = TypeVar("T")


def pick(found: Iterable[T], beginning: str, id_of: Callable[[T], str], what: str) -> T:
    """The only one of these whose id begins so."""
    fitting = [each for each in found if id_of(each).startswith(beginning)]
    if not fitting:
        raise NoSuchThing(what=what, id=beginning)
    if len(fitting) > 1 and beginning not in (id_of(each) for each in fitting):
        raise Unclear(f'There is more than one {what} whose id begins with "{beginning}"')
    return next((each for each in fitting if id_of(each) == beginning), fitting[0])
