"""What a kind of channel says it can do, it does; what it does, it says."""

import importlib
import inspect

import pytest

from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind, find_kinds


@pytest.mark.parametrize("kind", list(find_kinds().values()), ids=lambda kind: kind.platform)
def test_a_kind_implements_what_its_table_says(kind: ChannelKind) -> None:
    module = importlib.import_module(f"{kind.build.__module__}.channel")
    [built] = [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, Channel) and each.__module__ == module.__name__
    ]
    can = kind.capabilities
    assert built.capabilities is can
    assert (built.edit is not Channel.edit) == can.edits
    assert (built.show_typing is not Channel.show_typing) == (can.typing_s is not None)
