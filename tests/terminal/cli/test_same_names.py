"""One thing has one name in Python, on the command line, over HTTP and in the client. What differs is named
here, with the reason: other names stand only where the clients of another product need them."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pydantic
import pytest

import postroom
from postroom.api.queue import bodies, views
from postroom.api.queue.routes import messages, queues
from postroom.client import model
from postroom.kernel.model import NewMessage, QueueSettings
from tests.terminal.cli.runner import Cli
from tests.terminal.cli.test_help import COMMANDS

# The service is called by programs that were written for ScaiQueue: these are its words, and ours for them.
OF_SCAIQUEUE = {
    "tenant_id": "tenant",
    "hops": "hop",
    "completed_at": "finished_at",
    "ttl_seconds": "ttl_s",
    "delay_seconds": "delay_s",
    "claimed_by_type": "claimed_by",
    "claimed_by_id": "claimed_by",
}
# Over HTTP things have ids of their own, bytes come as base64, and a queue comes with its counts.
ONLY_HTTP = {"scope_id", "queue_id", "body_encoding", "depth_pending", "depth_claimed", "depth_dead", "seen"}
# In a body: the name of what is made, and words that ScaiQueue's clients send and that mean nothing here.
ONLY_IN_BODIES = {"slug", "purpose", "schema"}
# Options that people type often are shorter; a time on the command line carries its unit in its value (90s).
TYPED = {
    "idempotency_key": "key",
    "message_type": "type",
    "priority_tier": "priority",
    "priority_score": "score",
    "ttl_s": "ttl",
    "delay_s": "delay",
}
# What the command line alone has: where the store is, how the answer is shown, how the body is read.
ONLY_TYPED = {"queue", "store_", "json_", "lines", "text", "strict", "exist_ok"}


def python_names(*kinds: type[msgspec.Struct]) -> set[str]:
    return {name for kind in kinds for name in kind.__struct_fields__}


def http_names(kind: type[pydantic.BaseModel]) -> set[str]:
    return {told.alias or name for name, told in kind.model_fields.items()}


def find_strange(names: set[str], known: set[str], renamed: dict[str, str], more: set[str]) -> list[str]:
    return sorted(name for name in names if renamed.get(name, name) not in known and name not in more)


@pytest.mark.parametrize(
    ("shown", "read", "known"),
    [
        (views.MessageView, model.Message, python_names(postroom.Message)),
        (views.QueueView, model.Queue, python_names(postroom.Queue, QueueSettings)),
        (views.ScopeView, model.Scope, python_names(postroom.Scope)),
    ],
    ids=["message", "queue", "scope"],
)
def test_http_and_the_client_call_things_as_python_does(
    shown: type[pydantic.BaseModel], read: type[msgspec.Struct], known: set[str]
) -> None:
    assert find_strange(http_names(shown), known, OF_SCAIQUEUE, ONLY_HTTP) == []
    assert find_strange(python_names(read), http_names(shown), {}, ONLY_HTTP) == []


def test_the_command_line_calls_things_as_python_does(cli: Cli) -> None:
    cli.ok("scope", "create", "shop")
    cli.ok("queue", "create", "shop/orders")
    made = cli.json("publish", "shop/orders", "7")
    shown, queue = cli.json("show", made["id"]), cli.json("queue", "show", "shop/orders")
    [*_, scope] = cli.json("scope", "list")
    assert find_strange(set(made), python_names(postroom.Receipt), {}, set()) == []
    # With a message comes its story, with a queue and a scope how many messages are where.
    story = set(shown) - python_names(postroom.Message)
    assert story <= {"events", "why", "body_encoding", "waits_for", "answers"}
    assert set(queue) - python_names(postroom.Queue, QueueSettings) <= {"queue", "counts", "subscriptions"}
    assert find_strange(set(scope), python_names(postroom.Scope), {}, {"open", "dead", "queues"}) == []


def test_what_is_asked_for_has_the_same_names_too() -> None:
    new, settings = python_names(NewMessage), python_names(QueueSettings)
    body = next(
        each for each in (*vars(bodies).values(), *vars(messages).values()) if is_body(each, "NewMessageBody")
    )
    place = next(
        each for each in (*vars(bodies).values(), *vars(queues).values()) if is_body(each, "NewQueue")
    )
    assert find_strange(http_names(body), new, OF_SCAIQUEUE, ONLY_IN_BODIES) == []
    assert find_strange(http_names(place), settings, OF_SCAIQUEUE, ONLY_IN_BODIES) == []
    typed = {short: name for name, short in TYPED.items()}
    for path, known in ((("publish",), new), (("queue", "create"), settings)):
        options = {each.name for each in COMMANDS[path].params}
        assert find_strange(options, known, typed, ONLY_TYPED) == []
        assert find_strange(known, options, TYPED, set()) == []


def is_body(found: Any, name: str) -> bool:
    return isinstance(found, type) and issubclass(found, pydantic.BaseModel) and found.__name__ == name


SPANS = re.compile(r"(timeout|period|interval|elapsed|duration|lease|backoff|retention|ttl|wait|uptime)(_|$)")
UNITS = ("_s", "_ms", "_us", "_seconds")
# They are numbers, words or moments, although a span of time is part of their names.
NO_SPANS = {"lease_until", "wait_reason"}


def spans_without_unit() -> Iterator[str]:
    kinds = (postroom.Message, postroom.Queue, QueueSettings, NewMessage, model.Message, model.Queue)
    shown = (views.MessageView, views.QueueView)
    names = python_names(*kinds).union(*(http_names(each) for each in shown))
    for name in sorted(names - NO_SPANS):
        if SPANS.search(name) and not name.endswith(UNITS):
            yield name


def test_a_length_of_time_has_its_unit_in_its_name() -> None:
    assert list(spans_without_unit()) == []
