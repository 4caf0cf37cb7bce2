"""The durable workflows: a run from top to bottom, and the shards that it is shared out in.

They never raise, since DBOS would keep the error for ever: how they ended is what they return.
Each carries only names and numbers; rows and the ledger say what is still to do, so that carrying
one out again asks and writes nothing twice.
"""

from dataclasses import asdict
from typing import Any

from dbos import DBOS, SetWorkflowID
from dbos._error import DBOSAwaitedWorkflowCancelledError

from judge_gym.engine.runs.executor import Job, here
from judge_gym.engine.runs.options import Workflow
from judge_gym.engine.runs.orders import Outcome
from judge_gym.engine.runs.pipeline import Shard
from judge_gym.engine.runs.queue import POLL, SHARDS


@DBOS.workflow(name="run", max_recovery_attempts=None)
async def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """One run: evidence, rubric, scoring, rubric swap, probe."""
    with here().job(order, str(DBOS.workflow_id)) as job:
        await spread(job, "evidence")
        await job.rubrics("rubric")
        await spread(job, "score")
        await job.rubrics("swap")
        await spread(job, "swap")
        await spread(job, "probe")
    return asdict(await job.ended())


async def spread(job: Job, workflow: Workflow) -> None:
    """One workflow of a run: a single shard is carried out at once, more are shared out."""
    if not job.does(workflow):
        return
    # A step, so that after a crash the same shards are waited for, whatever is missing by then.
    shards = await DBOS.run_step_async({"name": f"plan {workflow}"}, job.shards, workflow)
    if job.alone(shards):
        for shard in shards:
            await job.perform(workflow, shard)
        return job.after(workflow)
    handles = []
    for number, shard in enumerate(shards):
        with SetWorkflowID(f"{job.id}/{workflow}/{number}"):
            handles.append(
                await DBOS.enqueue_workflow_async(
                    SHARDS, do_shard, job.order.to_json(), workflow, shard
                )
            )
    with job.waits():
        for handle in handles:
            try:
                said = await handle.get_result(polling_interval_sec=POLL)
                job.add(handle.workflow_id, Outcome(**said))
            except DBOSAwaitedWorkflowCancelledError:
                continue  # taken off the queue, because another had to stop
            if job.fault is not None:
                job.drop_waiting([other.workflow_id for other in handles])
    job.after(workflow)


@DBOS.workflow(name="shard", max_recovery_attempts=None)
async def do_shard(order: dict[str, Any], workflow: Workflow, shard: Shard) -> dict[str, Any]:
    """A part of one workflow of a run."""
    with here().job(order, str(DBOS.workflow_id)) as job:
        await job.perform(workflow, shard)
    return asdict(await job.ended())
