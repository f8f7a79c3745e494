"""The server itself: how it is, its housekeepers, its store, pausing everybody, coming back anew."""

from htpy import Renderable, a, code, div, td

from postroom import __version__
from postroom.portal.parts import (
    act_button,
    show_figures,
    show_pairs,
    show_row,
    show_section,
    show_state,
    show_table,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago, tell_span
from postroom.runtime.queries import HousekeeperStatus


async def show_system(visit: PortalVisit) -> PageView:
    services, caller = visit.services, visit.caller
    status = await services.system.status(caller)
    counts = await services.workload.counts(caller)
    keepers = await services.housekeepers.list_all(caller)
    paused = (await services.budgets.overview(caller)).paused
    return PageView(
        title="System",
        way="/system",
        actions=[
            a(".button", href="/setup")["Set up"],
            a(".button", href="/docs")["API"],
            a(".button", href="/system/style")["Style"],
            act_button("Let everybody go on", "/needs/resume-all", kind="primary")
            if paused
            else act_button(
                "Pause everybody",
                "/needs/pause-all",
                confirm="No agent begins a turn until you let them. Go on?",
            ),
            act_button(
                "Restart",
                "/system/restart",
                kind="danger",
                confirm="Restart the server? Accepted messages are safe; this page comes back by itself.",
            ),
        ],
        body=div(".stack-l", id="system", data_live=True)[
            show_figures(
                ("waiting", f"{counts.incoming:,}"),
                ("being worked on", f"{counts.processing:,}"),
                ("done", f"{counts.completed:,}"),
                ("dead", f"{counts.dead:,}"),
                ("answers on their way", f"{counts.outgoing:,}"),
            ),
            show_section(
                "Server",
                show_pairs(
                    ("Version", __version__),
                    ("Runs for", tell_span(status.uptime / 1_000_000)),
                    ("Port", str(status.port)),
                    ("Health", code["/healthz  /readyz  /metrics"]),
                    ("Heartbeats", f"every {tell_span(status.interval_s)}" if status.interval_s else "off"),
                    ("Backup", code["postroom backup"]),
                ),
            ),
            show_section(
                "Housekeepers",
                show_table(
                    ["Name", "Does", "Every", "Last run", ("Items", "num"), ("Runs", "num"), ""],
                    [_keeper(each, visit.now) for each in keepers],
                ),
                count=len(keepers),
            ),
        ],
    )


def _keeper(each: HousekeeperStatus, now: int) -> Renderable:
    well = show_state("dead", each.last_error) if each.last_error else show_ago(each.last_run_at, now)
    return show_row(
        td(".nowrap")[each.name],
        td(".text.quiet")[each.work],
        td(".nowrap.quiet")[tell_span(each.every_s)],
        td(".nowrap.quiet")[well],
        td(".num")[f"{each.total_items:,}"],
        td(".num.quiet")[f"{each.runs:,}"],
        td(".num")[act_button("Run now", "/system/housekeeper", {"name": each.name}, kind="plain")],
        row_id=f"keeper-{each.name}",
    )


async def run_housekeeper(visit: PortalVisit, form: SentForm) -> ActResult:
    done = await visit.services.housekeepers.run(visit.acting, form.word("name"))
    return ActResult(said=f"{form.word('name')} ran; {done} items.")


async def restart(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.system.restart(visit.acting)
    return ActResult(said="The server restarts. This page comes back by itself.")


PART = PortalPart(
    {"/system": show_system}, {"/system/housekeeper": run_housekeeper, "/system/restart": restart}
)
