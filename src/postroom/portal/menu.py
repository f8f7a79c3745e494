"""Which parts of the portal there are. Of two that fit a path, the earlier answers."""

from postroom.portal import (
    access,
    agents,
    api_reference,
    audit,
    channels,
    chat,
    conversations,
    dead_letters,
    events,
    floor,
    insights,
    memory,
    needs_you,
    providers,
    queues,
    rules,
    schedules,
    settings,
    setup,
    style,
    system,
    tasks,
)
from postroom.portal.visit import PortalPart

PARTS: tuple[PortalPart, ...] = tuple(
    part.PART
    for part in (
        needs_you,
        floor,
        chat,
        conversations,
        dead_letters,
        queues,
        insights,
        tasks,
        schedules,
        memory,
        agents,
        channels,
        rules,
        providers,
        access,
        audit,
        events,
        settings,
        setup,
        system,
        api_reference,
        style,
    )
)
