"""The audit: who wanted what of the work queue, and whether it was allowed."""

from htpy import Renderable, a, button, code, div, form, td

from postroom.kernel.ports import AuditEntry
from postroom.portal.parts import show_empty, show_row, show_state, show_table, text_field
from postroom.portal.visit import PageView, PortalPart, PortalVisit
from postroom.portal.words import cut, show_ago

ENTRIES = 100


async def show_audit(visit: PortalVisit) -> PageView:
    filters = {"event_type": visit.query("event")} if visit.query("event") else {}
    page = await visit.services.audit.list_page(
        visit.caller, cursor=visit.query("after") or None, limit=ENTRIES, **filters
    )
    return PageView(
        title="Audit",
        way="/audit",
        lead="Every call of the work queue and every act here, allowed or refused; newest first.",
        body=[
            form(".filters", method="get", action="/audit")[
                text_field(
                    "event", "Event", visit.query("event"), data_search=True, placeholder="message.publish"
                ),
                button["Filter"],
            ],
            div(id="audit", data_live=True)[
                show_table(
                    ["When", "Who", "Wanted", "Scope", "Outcome", "About"],
                    [_row(each, page.scopes, visit.now) for each in page.entries],
                )
                if page.entries
                else show_empty(
                    "Nothing was asked yet", "Calls of keys, agents and of this portal are kept here."
                ),
            ],
            div(".more")[a(".button", href=f"?after={page.entries[-1].id}")["Older"] if page.more else None],
        ],
    )


def _row(entry: AuditEntry, scopes: dict[int, str], now: int) -> Renderable:
    outcome = (
        show_state("completed", "allowed") if entry.allowed else show_state("dead", f"refused {entry.status}")
    )
    return show_row(
        td(".nowrap.quiet")[show_ago(entry.created_at, now)],
        td(".nowrap")[f"{entry.actor_type}:{cut(entry.actor_id, 24)}"],
        td(".nowrap")[code[entry.event_type]],
        td(".nowrap")[scopes.get(entry.scope_id, "")],
        td(".nowrap")[outcome],
        td(".text.small.quiet")[
            a(".link", href=f"/messages/{entry.message_id}")[entry.message_id[-12:]]
            if entry.message_id
            else None,
            " ",
            cut(entry.details, 160) if entry.details != "{}" else None,
        ],
        row_id=f"audit-{entry.id}",
    )


PART = PortalPart({"/audit": show_audit})
