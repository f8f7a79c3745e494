"""What happens as it happens, from the ledger, and the server's log; both filtered, and paused at will."""

from htpy import Renderable, a, button, code, div, form, td

from postroom.kernel.ledger import Event
from postroom.portal.parts import show_empty, show_row, show_section, show_table, text_field
from postroom.portal.visit import PageView, PortalPart, PortalVisit
from postroom.portal.words import cut, show_ago

SHOWN = 100
LINES = 100


async def show_events(visit: PortalVisit) -> PageView:
    words = visit.query("q")
    found = await visit.services.audit.newest_events(visit.caller, words, limit=SHOWN)
    lines = await visit.services.system.logs(visit.caller, LINES)
    lines = [line for line in lines if words.casefold() in str(line.get("text", "")).casefold()]
    return PageView(
        title="Events and logs",
        way="/events",
        actions=button(data_do="pause", aria_pressed="false")["Pause"],
        body=div(".stack-l")[
            form(".filters", method="get", action="/events", role="search")[
                text_field("q", "Words", words, data_search=True, placeholder="type, queue, actor or id"),
                button["Filter"],
            ],
            show_section(
                "Events",
                show_table(
                    ["#", "When", "What", "Where", "By", "About"], [_row(each, visit.now) for each in found]
                )
                if found
                else show_empty(
                    "Nothing happened", "Every change of the office and its queues appears here."
                ),
                count=len(found),
                part_id="events",
            ),
            show_section(
                "Log",
                show_table(
                    ["When", "Level", "Line"],
                    [
                        show_row(
                            td(".nowrap.quiet.small")[str(line.get("time", ""))[:19]],
                            td(".nowrap.small")[str(line.get("level", ""))],
                            td(".text.small")[str(line.get("text", ""))],
                        )
                        for line in reversed(lines)
                    ],
                )
                if lines
                else show_empty(
                    "No lines", "The log of the server is in its folder logs: ", code["postroom logs -f"]
                ),
                count=len(lines),
                part_id="log",
            ),
        ],
    )


def _row(event: Event, now: int) -> Renderable:
    message = event.message_id
    return show_row(
        td(".quiet.small")[f"{event.seq}"],
        td(".nowrap.quiet")[show_ago(event.time, now)],
        td(".nowrap")[code[event.type]],
        td(".nowrap")[f"{event.scope}/{event.queue}" if event.queue else event.scope or ""],
        td(".nowrap")[cut(event.actor, 28)],
        td(".text.small.quiet")[
            a(".link.mono", href=f"/messages/{message}")[message[-12:]] if message else None,
            " ",
            cut(event.data, 160),
        ],
        row_id=f"event-{event.seq}",
    )


PART = PortalPart({"/events": show_events})
