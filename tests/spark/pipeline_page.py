"""The page about the pipeline, and what stands for what only its reader has."""

from tests.docs.shell_pages import ShellPage

SPARK = "starts Spark twice, which takes half a minute; the slow test of this page types it"
PIPELINE = ShellPage(
    "docs/how-to/pipeline.md",
    ("Nothing is new", "The report is in", "agent_day", "sum(cost_usd)", "erased", "sent again"),
    not_run={"postroom pipeline backtest": SPARK},
)
