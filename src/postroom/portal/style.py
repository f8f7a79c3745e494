"""Every component in every state, so that a change of a token is seen at once in all of them."""

from htpy import a, button, code, div, fragment, h2, input, kbd, label, p, section, span, td

from postroom.portal.markdown import render_markdown
from postroom.portal.parts import (
    STATE_WORDS,
    area_field,
    choice_field,
    show_empty,
    show_face,
    show_figures,
    show_pairs,
    show_row,
    show_section,
    show_state,
    show_table,
    show_tag,
    text_field,
)
from postroom.portal.visit import PageView, PortalPart, PortalVisit

ANSWER = """An answer with `code`, **weight** and

```python
print("a block")
```

- a list
- of two

> and what somebody else said
"""
TOKENS = ("paper", "sheet", "well", "select", "line", "line-2", "ink-3", "ink-2", "ink", "accent", "focus")


async def show_style(visit: PortalVisit) -> PageView:
    return PageView(
        title="Style",
        way="/system",
        crumb=("/system", "System"),
        lead="Every component in every state, light and dark. All values are in tokens.css.",
        body=div(".stack-l")[
            show_section("States", div(".flow")[[show_state(state) for state in STATE_WORDS]]),
            show_section(
                "Buttons",
                div(".flow")[
                    button["Plain paper"],
                    button(".primary")["Primary ", kbd["1"]],
                    button(".accent")["Cannot be undone"],
                    button(".plain")["Quiet"],
                    button(".danger")["Give up"],
                    button(disabled=True)["Not now"],
                    button(aria_pressed="true")["Pressed"],
                    a(".button", href="/system/style")["A link"],
                ],
            ),
            show_section(
                "Fields",
                div(".fields")[
                    text_field("a", "A line", "with a value", hint="and a hint"),
                    text_field("b", "An empty one", placeholder="what to write"),
                    area_field("c", "Several lines", "First line\nSecond line", rows="3"),
                    choice_field("d", "A choice", [("1", "one"), ("2", "two")]),
                    label(".check")[input(type="checkbox", checked=True), "A switch that is on"],
                    label(".check")[input(type="checkbox"), "One that is off"],
                ],
            ),
            show_section(
                "Type",
                div(".stack")[
                    p[
                        "Text at 14 px, tabular figures 0123456789, ",
                        code["ids and bodies"],
                        " in monospace.",
                    ],
                    p(".quiet")["What is less important."],
                    p(".small")["Small."],
                ],
            ),
            show_section(
                "Table",
                show_table(
                    ["Agent", "State", "Text", ("Waiting", "num")],
                    [
                        show_row(
                            td[f"@agent-{n}"],
                            td[show_state(state)],
                            td(".text")["A long text that is cut where the column ends " * 3],
                            td(".num")[f"{n * 1234:,}"],
                        )
                        for n, state in enumerate(STATE_WORDS)
                    ],
                ),
            ),
            show_section(
                "Figures", show_figures(("messages", "12,304"), ("agents", "7"), ("today", "$1.24"))
            ),
            show_section(
                "Facts",
                show_pairs(
                    ("Queue", code["default/orders"]),
                    ("Since", "2 h 5 min"),
                    ("Tags", span(".flow")[show_tag("news"), show_tag("review", accent=True)]),
                ),
            ),
            show_section(
                "Faces",
                div(".flow")[show_face("lead"), show_face("code reviewer"), show_face("busy", busy=True)],
            ),
            show_section(
                "Answers",
                div(".prose")[render_markdown(ANSWER)],
            ),
            show_section(
                "Empty",
                show_empty(
                    "Nothing here yet",
                    "This says what will be here and how it comes: ",
                    code["postroom send"],
                    ".",
                ),
            ),
            section[
                h2["Colours"],
                fragment[
                    show_table(
                        ["Token", "Value"],
                        [show_row(td[code[f"--{name}"]], td[code[f"var(--{name})"]]) for name in TOKENS],
                    )
                ],
            ],
        ],
    )


PART = PortalPart({"/system/style": show_style})
