"""What happens in a history: people write, turns are slow, fail or go round, settings change, agents go."""

import copy
import random
from typing import Any

AGENTS = ("lead", "coder", "reviewer", "sam")
PEOPLE = ("ann", "bob", "cy")
RULES: list[dict[str, Any]] = [
    {"match": r"Chat room(?!.*------).*again", "reply": "[#dev: again and again]"},
    {"match": "Chat room(?!.*------)", "reply": "noted"},
    {"match": "roundabout", "agent": "lead", "reply": "on it", "hand_off": {"coder": "roundabout $turn"}},
    {"match": "roundabout", "agent": "coder", "reply": "back", "hand_off": {"lead": "roundabout $turn"}},
    {"match": "ask all", "agent": "lead", "reply": "I ask.", "hand_off": {"coder": "do", "reviewer": "see"}},
    {"match": "tell the room", "reply": "[#dev: it begins]"},
    {"match": "again", "reply": "[#dev: again]"},
    {"match": "broken", "fail": "crashed"},
    {"match": "refused", "fail": "refused"},
    {"match": "flaky", "fail": "crashed", "times": 1, "reply": "At last."},
    {"match": "slow", "reply": "slowly done", "seconds": 0.4},
    {"match": "nobody", "reply": "[@ghost: boo] [@lead: me]"},
    {"match": "", "reply": "ok $turn"},
]
WORDS = (
    "hello",
    "slow one",
    "ask all of them",
    "roundabout",
    "tell the room",
    "again please",
    "broken thing",
    "refused thing",
    "flaky thing",
    "nobody there",
)


def settings_of(rng: random.Random, **changes: Any) -> dict[str, Any]:
    return {
        "agents": {name: {"provider": "paid", "model": ""} for name in AGENTS},
        "teams": {
            "dev": {"agents": ["lead", "coder", "reviewer"], "leader_agent": "lead"},
            "ops": {"agents": ["sam", "coder"], "leader_agent": "sam"},
        },
        "monitoring": {"heartbeat_interval": 0},
        "guards": {"attempts": 2, "grace_s": 0.5},
        "limits": {"turns_at_once": rng.choice([1, 2, 8])},
        "replies": {"mode": rng.choice(["each", "each", "combined"])},
        **changes,
    }


def history(seed: int) -> tuple[dict[str, Any], list[int]]:
    """The plan, and the steps at which its lives are killed; the last life is left to finish."""
    rng = random.Random(f"history {seed}")
    settings = settings_of(rng)
    if rng.random() < 0.3:
        settings["budgets"] = {"daily_usd": rng.choice([0.05, 0.2]), "reserve_usd": 0.01}
    first, actions = settings, list[dict[str, Any]]()
    for _ in range(rng.randrange(4, 10)):
        dice = rng.random()
        pause = rng.choice([0.0, 0.0, 0.05, 0.3])
        if dice < 0.75:
            to = rng.choice([*(f"@{name}" for name in (*AGENTS, "dev", "ops")), ""])
            words = f"{to} {rng.choice(WORDS)}".strip()
            if rng.random() < 0.2:
                words = "[@lead: ask all] [@sam: slow] [@coder: hello]"
            actions.append({"write": words, "person": rng.choice(PEOPLE), "pause": pause})
        elif dice < 0.92:
            settings = copy.deepcopy(settings)
            _change(rng, settings)
            actions.append({"settings": settings, "pause": pause})
        else:
            actions.append({"kill": rng.choice(AGENTS), "pause": pause})
    actions.append({"write": "@dev the last word", "person": "ann"})
    kills = [rng.randrange(5, 120) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    plan = {"settings": first, "script": {"rules": RULES, "pace": 0.5}, "price": 0.02, "actions": actions}
    plan["answers"] = [
        [rng.choice(["/continue", "/continue", "/stop"]) for _ in range(3)] for _ in range(rng.randrange(4))
    ]
    if "budgets" in settings and rng.random() < 0.5:
        plan["in_the_end"] = {**settings, "budgets": {"daily_usd": 1000}}
    return plan, kills


def _change(rng: random.Random, settings: dict[str, Any]) -> None:
    """Somebody leaves, comes back, leads, or a setting is another."""
    present = list(settings["agents"])
    dice = rng.random()
    if dice < 0.4 and len(present) > 2:
        gone = rng.choice(present)
        del settings["agents"][gone]
    elif dice < 0.6:
        for name in AGENTS:
            settings["agents"].setdefault(name, {"provider": "paid", "model": ""})
    elif dice < 0.8:
        settings["teams"]["dev"]["leader_agent"] = rng.choice(["lead", "coder", "reviewer"])
    else:
        settings["limits"] = {"turns_at_once": rng.choice([1, 2, 8])}


def fan_outs(mode: str) -> dict[str, Any]:
    """Twenty messages to five agents each, with the settings that everybody has who set none."""
    five = [f"a{number}" for number in range(5)]
    rules = [{"match": "", "reply": "answer of $agent to $prompt", "seconds": 0.02}]
    words = " ".join(f"[@{name}: question]" for name in five)
    return {
        "settings": {
            "agents": {name: {"provider": "paid", "model": ""} for name in five},
            "monitoring": {"heartbeat_interval": 0},
            **({"replies": {"mode": mode}} if mode != "each" else {}),
        },
        "script": {"rules": rules, "pace": 1.0},
        "actions": [{"write": f"{words} number {n}", "person": f"p{n}"} for n in range(20)],
    }
