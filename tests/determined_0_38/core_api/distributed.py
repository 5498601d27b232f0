"""Fourth step: the script starts a process for each slot itself, and they count together."""

import os
import subprocess
import sys

import determined as det

PORT = 29433


def launch(slots: int) -> int:
    """Start this script once for each slot, as worker number so many."""
    processes = [subprocess.Popen([sys.executable, __file__, str(rank), str(slots)]) for rank in range(slots)]
    return max(process.wait() for process in processes)


def main(rank: int, size: int) -> None:
    distributed = det.core.DistributedContext(
        rank=rank,
        size=size,
        local_rank=rank,
        local_size=size,
        cross_rank=0,
        cross_size=1,
        chief_ip="127.0.0.1",
        port_offset=int(os.environ.get("COUNTER_OFFSET", "7")),
    )
    with det.core.init(distributed=distributed) as context:
        total = 0
        for step in range(1, 11):
            total += sum(context.distributed.allgather(rank + 1))
            if context.distributed.rank == 0:
                context.train.report_training_metrics(step, {"total": total})
            if context.preempt.should_preempt():
                return
        if context.distributed.rank == 0:
            context.train.report_validation_metrics(10, {"total": total})


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        sys.exit(launch(len(det.get_cluster_info().slot_ids) or 1))
    main(int(sys.argv[1]), int(sys.argv[2]))
