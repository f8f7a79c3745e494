"""Who plays in the made-up month: agents with their models and habits, people, channels and words."""

import msgspec


class Player(msgspec.Struct, frozen=True):
    """An agent: its model, how long its turns take, what it costs, how often it asks a colleague."""

    agent: str
    provider: str
    model: str
    median_s: float
    usd_in: float
    usd_out: float
    asks: tuple[str, ...] = ()
    asks_rate: float = 0.0
    failure_rate: float = 0.03


PLAYERS = (
    Player("front-desk", "claude", "claude-haiku-5", 6, 1.0, 5.0, ("coder", "writer", "books"), 0.35, 0.015),
    Player("coder", "codex", "gpt-5.3-codex", 48, 1.8, 14.0, ("reviewer",), 0.55, 0.06),
    Player("reviewer", "claude", "claude-sonnet-5", 25, 3.0, 15.0, ("coder",), 0.25, 0.03),
    Player("writer", "claude", "claude-sonnet-5", 30, 3.0, 15.0, ("front-desk",), 0.1, 0.025),
    Player("books", "opencode", "sonnet", 18, 3.0, 15.0, ("writer",), 0.12, 0.04),
    Player("ops", "script", "offline", 2, 0.0, 0.0, ("coder",), 0.2, 0.08),
)
FIRST_AGENTS = (("front-desk", 0.55), ("coder", 0.18), ("writer", 0.12), ("books", 0.08), ("ops", 0.07))
CHANNELS = (("telegram", 0.45), ("discord", 0.25), ("whatsapp", 0.15), ("web", 0.10), ("cli", 0.05))
PEOPLE = (
    "Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June", "Kai", "Lena", "Milo", "Nora",
    "Otto", "Pia", "Quin", "Rosa", "Sam", "Tess",
)  # fmt: skip
TEAM = "makers"
MEMBERS = ("coder", "reviewer", "writer")

FAILURES = (
    ("overloaded", "the model's servers are overloaded", 0.32),
    ("timed_out", "no answer within the time limit", 0.24),
    ("crashed", "the program ended with code 1", 0.18),
    ("rate_limit", "too many requests; try again later", 0.14),
    ("context_too_long", "the conversation is longer than the model can read", 0.06),
    ("refused", "the model refused these words", 0.04),
    ("auth", "the API key was refused", 0.02),
)
SUBJECTS = (
    "the invoice of last month", "a broken build on main", "the launch text", "a refund for order {n}",
    "the weekly report", "a login that fails", "the price list", "a slow page", "the newsletter",
    "a missing parcel {n}", "the staging server", "a typo on the front page", "the tax form",
    "a new customer", "the backup of last night", "the meeting on {n}th street",
)  # fmt: skip
ASKS = (
    "Can you look into {it}?", "What is the state of {it}?", "Please take care of {it} today.",
    "I need help with {it}.", "Somebody complained about {it}; please answer.", "Write me a note about {it}.",
    "Why did {it} come up again?", "Summarise {it} in three lines.",
)  # fmt: skip
ANSWERS = (
    "Done: I took care of {it}. Nothing else is open.",
    "I looked into {it}; the cause was found and it is fixed.",
    "Here is what I know about {it}: it is on its way and should be settled tomorrow.",
    "I asked a colleague about {it}; the answer is below.",
)
