"""Every name after `postroom`, with the module that holds it and the line that help lists it with.

Only the module of the command that was asked for is imported, so that a command starts quickly: nothing here
may import one of them. A test compares each line with what its command says of itself.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from postroom.terminal.cli.plain_words import PlainGroup

if TYPE_CHECKING:
    from typer._click import Command, Context

START, OFFICE, QUEUES, MESSAGES, UPKEEP = "Start here", "Office", "Queues", "Messages", "Upkeep"


@dataclass(frozen=True)
class CatalogLine:
    name: str
    module: str
    panel: str
    about: str
    hidden: bool = False


# Panel of the help, module, name: what it does. A name in brackets works, but help does not list it.
_COMMANDS: dict[str, dict[str, dict[str, str]]] = {
    START: {
        "setup": {
            "setup": (
                "Set up the office: a provider that answers, the first agents, a channel. Ends with a real "
                "answer."
            ),
        },
        "demo": {
            "demo": "Watch a team of three agents take a request, fail, try again, and answer.",
        },
        "server": {
            "start": "Start the server: the API, the agents, the channels, the housekeeping.",
            "stop": "Stop the server. What is accepted is kept, whatever happens.",
            "restart": "Stop the server and start it again. If it could not start, it is not stopped.",
            "status": "Show whether the server runs, and how many messages are where.",
            "logs": "Show the server's log.",
            "login": "Print a link that logs a browser in, once.",
        },
        "joining": {
            "join": "Make this host one of an office on a database server.",
            "token": "The owner's token: what opens everything, and how it is replaced.",
        },
        "version": {
            "version": "Print the versions of Postroom and of what it stands on.",
            "(help)": "Show what there is, or how one command is used.",
        },
        "send": {
            "send": "Write to an agent or a team. When this returns, the message is safe.",
        },
        "inbox": {
            "inbox": "Read the answers that wait for you in this shell; what is shown is put away.",
        },
        "tinyagi_commands": {
            "(run)": "Start the server and say how to go on, as postroom alone does.",
            "office": "Open the portal in a browser, logged in. Without a terminal, print the link.",
        },
    },
    OFFICE: {
        "agents": {
            "agent": "Agents: who works here, with what, and where.",
        },
        "teams": {
            "team": "Teams: agents that work together, with one who leads.",
        },
        "tasks": {
            "task": "Tasks: the board of the office, its columns and what is said about them.",
        },
        "projects": {
            "project": "Projects: what tasks belong to.",
        },
        "rooms": {
            "room": "Rooms: where all members of a team read what is said.",
        },
        "memory": {
            "memory": "Memory: what agents keep in mind, file by file.",
        },
        "schedules": {
            "schedule": "Schedules: what is sent to whom by itself, and when.",
        },
        "guards": {
            "guards": "Guards: paused conversations, budgets, and the switch that pauses everybody.",
        },
        "pairing": {
            "pairing": "Pairing: who has asked to write, and who may.",
        },
        "channels": {
            "channel": "Channels: talk to the office from chat platforms.",
            "(channels)": "The same as channel.",
        },
        "office_settings": {
            "settings": "Settings: read and change them by name. Secrets show as ********.",
            "provider": "Providers: what agents work with, and servers of your own.",
            "model": (
                "Show the models, or set the one of the chosen provider and of every agent that "
                "works with it."
            ),
        },
        "plugins": {
            "plugins": "Plugins: code of others that may change texts and hear what happens.",
        },
        "chat": {
            "chat": "Talk with an agent or a team: answers appear as they are written.",
        },
        "top": {
            "top": "Watch the office: what needs you, who works, what waits. Numbers answer, q leaves.",
        },
        "live_views": {
            "chatroom": "Sit in the room of a team: read what is said, and write. q leaves.",
        },
        "tinyagi_commands": {
            "reset": "Begin new sessions: what was said before is forgotten.",
            "heartbeat": "Show which agents wake up by themselves, how often, and when they last did.",
        },
    },
    QUEUES: {
        "scopes": {
            "scope": "Scopes: namespaces of queues, each with its own dead letters.",
        },
        "queues": {
            "queue": "Queues: ordered channels in a scope, with their rules for retries and limits.",
        },
        "schemas": {
            "schema": "Schemas: what the bodies of a queue must look like.",
        },
        "rules": {
            "rule": "Rules: what happens to messages by itself.",
        },
        "subscriptions": {
            "subscribe": (
                "Subscribe to a broadcast queue: from now on each message is also delivered to this name."
            ),
            "unsubscribe": "End a subscription; what the subscriber had not finished is cancelled.",
        },
    },
    MESSAGES: {
        "publish": {
            "publish": (
                "Publish a message. When this ends without an error, the message survives a power cut."
            ),
        },
        "claims": {
            "claim": "Claim the next messages: nobody else gets them while the lease lasts.",
            "complete": "The work is done. Saying so again with the same token is no error.",
            "fail": (
                "The work failed: it is retried after a pause, or a dead letter when no attempts are left."
            ),
            "release": "Give a message back untouched: the attempt does not count.",
            "extend": "Keep a claim for another lease, counted from now.",
            "snooze": "Come back later; unlike a failure this does not count as an attempt.",
        },
        "messages": {
            "peek": "Show what would be claimed next, without claiming it.",
            "list": "List messages, live and archived, in the order they came.",
            "show": "Show a message, why it is where it is, and everything that happened to it.",
            "cancel": "End open messages for good. Whoever holds a claim learns of it when it next uses it.",
        },
        "dead": {
            "dead": "Dead letters: messages that used up their attempts, or were refused for good.",
        },
        "reviews": {
            "review": "Reviews: questions that wait for a person.",
        },
        "history_commands": {
            "history": "Search everything that was ever said.",
            "trace": (
                "Show a conversation as a tree: who did what, caused by what, how long it waited "
                "and was worked on."
            ),
            "why": "Say why a message is where it is, or why it ended as it did, and what led there.",
        },
    },
    UPKEEP: {
        "workers": {
            "worker": "Run a Python function on the messages of a queue, on this machine or any other.",
        },
        "keys": {
            "key": "Keys: who may use the work queue over HTTP.",
        },
        "audit": {
            "audit": "The audit: every gated call over HTTP, allowed or refused.",
        },
        "pipeline": {
            "pipeline": "History, traces, costs and insights: the lake, on Spark.",
        },
        "ledger": {
            "ledger": "The ledger: everything that ever happened, in order, chained by hashes.",
        },
        "stores": {
            "store": "The store: what it is, and how it moves to another database.",
        },
        "housekeepers": {
            "housekeepers": "List the housekeepers and their last runs, or run one now.",
        },
        "backup": {
            "backup": (
                "Copy the store to a file; nobody has to stop working. "
                "Its digest stands beside it: FILE.sha256."
            ),
        },
        "restore": {
            "restore": "Put a backup in the place of the store. The store as it was is kept beside it.",
        },
        "doctor": {
            "doctor": "Look for what is wrong, and say what cures it. Ends with 1 when something is bad.",
        },
        "importing": {
            "import": "Take over an office that another program kept. Its files stay as they are.",
        },
        "erase": {
            "erase": (
                "Erase what the hot store holds about a person; ids and times stay, and the "
                "ledger keeps the proof."
            ),
        },
        "tinyagi_commands": {
            "update": "Say how to upgrade. Nothing is asked over the network, unless you want it.",
            "(install)": "Nothing is left to install: say what there is to do instead.",
        },
    },
}

CATALOG = tuple(
    CatalogLine(name.strip("()"), module, panel, about, hidden=name.startswith("("))
    for panel, modules in _COMMANDS.items()
    for module, names in modules.items()
    for name, about in names.items()
)


class CommandSummary(TyperCommand):
    """What help and completion need to know of a command that is not imported."""

    def __init__(self, line: CatalogLine) -> None:
        super().__init__(line.name, help=line.about, hidden=line.hidden, rich_help_panel=line.panel)
        self._line = line

    def load(self) -> "Command":
        """The command itself."""
        module = import_module(f"postroom.terminal.cli.{self._line.module}")
        root = typer.Typer(rich_markup_mode="rich", add_completion=False)
        if hasattr(module, "register"):
            module.register(root, self._line.panel)
        else:
            root.add_typer(module.app, rich_help_panel=self._line.panel)
        return get_group(root).commands[self._line.name]


class CatalogGroup(PlainGroup):
    """Lists its commands by their summaries, and loads the one that is run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for line in CATALOG:
            self.add_command(CommandSummary(line))

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> tuple[str | None, "Command | None", list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, CommandSummary) else command, rest
