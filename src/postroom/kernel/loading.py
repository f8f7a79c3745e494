"""What a group of commands names, fetched before they are applied: each kind of it with one question."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.held_rows import HeldRows
from postroom.kernel.service_commands import AnswerReview
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import find_target, named_keys

NAMES_MESSAGE = (c.ClaimCommand, c.Cancel, c.Kill, c.Reprioritise, AnswerReview)
# Beside these nothing asks for a message that is being completed.
_PLAIN = frozenset({c.Publish, c.PublishLike, c.Claim, c.Complete, c.CompleteMany})
# Beside completions these name no message.
_COMPLETING = frozenset({c.PublishLike, c.Claim, c.Complete})
# Alone, these fetch what they need with one question as it is.
ALONE = frozenset({c.Publish, c.PublishLike, c.Claim, c.Complete, c.Extend, c.Fail, c.Release, c.Snooze})


def load(ctx: TransitionContext, commands: Sequence[c.Command]) -> None:
    """What cannot be read is left to the command that names it, which refuses it."""
    if _COMPLETING.issuperset(map(type, commands)):
        # Which is what most of a large group are.
        named = (command.message_id for command in commands if type(command) is c.Complete)
        ctx.session.load(each for each in named if isinstance(each, str))
        return
    ids: list[str] = []
    keys: list[tuple[int, str]] = []
    budgets: defaultdict[str, set[str]] = defaultdict(set)
    for command in _flatten(commands):
        if isinstance(command, NAMES_MESSAGE):
            ids.append(command.message_id)
        elif isinstance(command, c.ExtendMany):
            ids += (message_id for message_id, _ in command.claims)
        elif isinstance(command, c.CompleteMany):
            ids += (message_id for message_id, *_ in command.done)
        elif isinstance(command, c.Publish):
            keys += _keys(ctx, command)
        elif isinstance(command, c.Reserve | c.Settle):
            budgets[command.tenant] |= {
                charge.account for charge in command.charges if is_text(charge.account)
            }
    ctx.session.load(each for each in ids if isinstance(each, str))
    ctx.session.load_keys(keys)
    for tenant in sorted(budgets):
        ctx.session.load_budgets(tenant, budgets[tenant])


def adopt_held(ctx: TransitionContext, held: HeldRows, commands: Sequence[c.Command]) -> None:
    """What this process has claimed itself and only completes now need not be read: the store compares the
    tokens. Where more may follow from a completion, it is read."""
    if not all(type(command) in _PLAIN for command in commands):
        return
    claims: list[tuple[str, str]] = []
    for command in commands:
        if type(command) is c.Complete:
            claims.append((command.message_id, command.token))
        elif type(command) is c.CompleteMany:
            claims += ((message_id, token) for message_id, token, _ in command.done)
    for row in held.take([(each, token) for each, token in claims if isinstance(each, str)]):
        if row.parent_id is None and not ctx.has_rules(row.scope_id):
            ctx.session.adopt(row)


def _flatten(commands: Sequence[c.Command]) -> Iterator[c.Command]:
    for command in commands:
        if type(command) is c.Unit and isinstance(command.commands, tuple | list):
            yield from command.commands
        else:
            yield command


def _keys(ctx: TransitionContext, command: c.Publish) -> list[tuple[int, str]]:
    named = named_keys(command.messages) if isinstance(command.messages, list) else []
    if not named:
        return []
    ctx.tenant = command.tenant
    try:
        queue_id = find_target(ctx, command.queue).queue.id
    except PostroomError:
        return []
    return [(queue_id, key) for key in named]
