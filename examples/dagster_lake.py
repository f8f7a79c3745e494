"""Dagster keeps the lake up to date: one asset that calls `postroom pipeline run`, every hour.

Try it with `dagster dev -f dagster_lake.py`. POSTROOM_STORE and POSTROOM_LAKE say where store and lake are
when they are not in the usual place. Dagster and Postroom need not share an environment: all that
passes between them is a command and its JSON.
"""

import json
import subprocess

import dagster as dg  # pyright: ignore[reportMissingImports]

BUSY = "PIPELINE_BUSY"
"""Somebody else runs on this lake just now, which is no failure: it is tried again."""


@dg.asset(group_name="postroom", retry_policy=dg.RetryPolicy(max_retries=2, delay=60))
def postroom_lake(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Everything new of the store, in the lake. A run that was stopped goes on the next time."""
    done = subprocess.run(
        ["postroom", "pipeline", "run", "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        error = json.loads(done.stderr.splitlines()[-1])["error"]
        raise dg.Failure(
            error["message"], metadata={"code": error["code"]}, allow_retries=error["code"] == BUSY
        )
    told = json.loads(done.stdout)
    for sentence in [*told["broken"], *told["repaired"], *told["notices"]]:
        context.log.warning(sentence)
    return dg.MaterializeResult(
        metadata={"events": told["events"], "position": told["position"], "quarantined": told["quarantined"]}
    )


hourly = dg.ScheduleDefinition(name="postroom_lake_hourly", target=[postroom_lake], cron_schedule="0 * * * *")
defs = dg.Definitions(assets=[postroom_lake], schedules=[hourly])
