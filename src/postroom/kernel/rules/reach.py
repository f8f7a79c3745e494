"""How far a rule reaches: it acts in the name of whoever made it, and no further than access lists let them.

Lists are asked when it acts, so that a queue that is closed later is closed to it too.
"""

from postroom.kernel.access import acl
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Queue
from postroom.kernel.rules.rule import Rule
from postroom.kernel.service_ports import ALL_DOCUMENTS
from postroom.kernel.transitions.context import TransitionContext


def may(ctx: TransitionContext, rule: Rule, queue: Queue, wanted: Permission) -> bool:
    if rule.acts_as is None:
        return True
    for kind, prefix in ((acl.ENTRY, f"{queue.scope_id}/{queue.id}/"), (acl.GRANT, f"{queue.scope_id}/")):
        found = ctx.tx.documents(queue.tenant, kind, prefix, "", ALL_DOCUMENTS)
        if found:
            entries = [acl.read(document.data) for document in found]
            return acl.judge(entries, frozenset(rule.acts_as), wanted, ctx.now) is AccessVerdict.ALLOWED
    return True
