"""The durable workflows: a run from its first step to its last, and the shards of one step.

They carry only names and numbers. The lab's rows and the ledger show what is missing, so that
executing one again neither asks nor writes anything twice.
"""

from collections.abc import Sequence
from typing import Any

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from dbos._error import DBOSAwaitedWorkflowCancelledError

from judge_gym.engine.runs.executor import Executor, Pipeline
from judge_gym.engine.runs.orders import Outcome
from judge_gym.engine.runs.pipeline import Shard
from judge_gym.engine.runs.queue import POLL


def register(executor: Executor) -> None:
    """Registers the workflows with DBOS, which finds them by name, for one executor.

    DBOS exists once per process, and so does the executor that these functions close over.
    """

    @DBOS.workflow(name="run", max_recovery_attempts=None)
    async def run(order: dict[str, Any]) -> dict[str, Any]:
        """Executes a run: evidence, rubric, scoring, rubric swap, probe; or a suite's evals."""

        async def every_step(pipeline: Pipeline) -> None:
            pipeline.announce()
            for step in pipeline.steps:
                # A step of DBOS, so that after a crash the same shards are awaited, whatever is
                # missing by then.
                shards = await DBOS.run_step_async({"name": f"plan {step}"}, pipeline.shards, step)
                if len(shards) <= 1 or pipeline.order.offline:
                    for shard in shards:
                        await executor.perform(pipeline, step, shard)
                else:
                    await spread(pipeline, step, shards)
                pipeline.finish(step)

        return await executor.execute(order, str(DBOS.workflow_id), every_step)

    async def spread(pipeline: Pipeline, step: str, shards: Sequence[Shard]) -> None:
        """Queues the shards of a step for any process, and waits until all have ended."""
        id, handles = str(DBOS.workflow_id), []
        _, queue = pipeline.order.queues
        for number, shard in enumerate(shards):
            study = SetEnqueueOptions(queue_partition_key=pipeline.order.study)
            with SetWorkflowID(f"{id}/{step}/{number}"), study:
                order = pipeline.order.to_json()
                handles.append(
                    await DBOS.enqueue_workflow_async(queue, run_shard, order, step, shard)
                )
        error: Exception | None = None
        with executor.awaiting_shards(id):
            for handle in handles:
                try:
                    outcome = Outcome(**await handle.get_result(polling_interval_sec=POLL))
                except DBOSAwaitedWorkflowCancelledError:
                    continue  # it was taken off the queue, because another one ended early
                outcome.add_to(pipeline.progress)
                error = error or executor.errors.pop(handle.workflow_id, None) or outcome.error
                if error is not None:
                    executor.queue.drop_waiting([other.workflow_id for other in handles])
        if error is not None:
            raise error

    @DBOS.workflow(name="shard", max_recovery_attempts=None)
    async def run_shard(order: dict[str, Any], step: str, shard: Shard) -> dict[str, Any]:
        """Executes a part of one step of a run."""

        async def one_shard(pipeline: Pipeline) -> None:
            await executor.perform(pipeline, step, shard)

        return await executor.execute(order, str(DBOS.workflow_id), one_shard)
