"""What workers write goes into the store as it comes, up to a limit for each trial: then the middle is left out."""

from __future__ import annotations

from dataclasses import dataclass

from det_native.master.flow.context import Context
from det_native.master.launch.base import Output
from det_native.master.store import log_limits, logs
from det_native.master.store.log_limits import ROW_BYTES, Kept

_MIB = 1 << 20
# How much more than its share may lie behind the gap before it is cleared away: each time all of it is looked at.
_SLACK = 1.5


@dataclass(frozen=True)
class _Source:
    """One process of a run: whose output it is, and where reading goes on."""

    trial_id: int
    run_id: str
    offsets: list[int]
    rank: int


class OutputStore:
    """Stores the output of runs. Used by the decision thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._half = context.places.output_bytes // 2
        self._kept: dict[int, Kept] = {}

    def store(self, trial_id: int, run_id: str, offsets: list[int]) -> list[int]:
        """Store what the processes of a run have written since `offsets`; return up to where that is now."""
        for rank in range(len(offsets)):
            while (found := self._next(_Source(trial_id, run_id, offsets, rank))) != offsets:
                offsets = found
        return offsets

    def forget(self, trial_id: int) -> None:
        """The trial writes nothing more for now."""
        self._kept.pop(trial_id, None)

    def _next(self, source: _Source) -> list[int]:
        """Store the next piece of one process's output."""
        launcher, offset = self._context.runner_of(source.run_id), source.offsets[source.rank]
        output = launcher.logs(source.run_id, offset, source.rank)
        if output.offset == offset:
            return source.offsets
        if self._kept_of(source.trial_id).head >= self._half and output.behind > 2 * self._half:
            # Most of it would be deleted at once.
            output = launcher.logs(source.run_id, output.offset + output.behind - self._half, source.rank)
            output = Output(output.text.partition("\n")[2], output.offset)
        return self._write(source, output.text, output.offset)

    def _write(self, source: _Source, text: str, offset: int) -> list[int]:
        before, rank = self._kept_of(source.trial_id), source.rank
        offsets = [*source.offsets[:rank], offset, *source.offsets[rank + 1 :]]
        head, tail, marker = before.head, before.tail, before.marker
        length = len(text.encode())
        left_out = before.left_out + max(offset - source.offsets[rank] - length, 0)
        size = length + ROW_BYTES * (text.count("\n") + 1)
        with self._context.database.write() as transaction:
            if head < self._half and marker is None:
                head += size
            else:
                if marker is None:
                    marker = log_limits.mark(transaction, source.trial_id, source.run_id, self._sentence(left_out))
                tail += size
            logs.add_output(transaction, source.trial_id, source.run_id, text, offsets, rank)
            if marker is not None and tail > _SLACK * self._half:
                tail, dropped = log_limits.drop_middle(transaction, source.trial_id, marker, self._half)
                left_out += dropped
            if marker is not None and left_out != before.left_out:
                log_limits.set_mark(transaction, marker, self._sentence(left_out))
        self._kept[source.trial_id] = Kept(head, tail, marker, left_out)
        if marker is not None:
            self._context.runner_of(source.run_id).release_output(source.run_id, rank, self._half, offset - self._half)
        return offsets

    def _kept_of(self, trial_id: int) -> Kept:
        if trial_id not in self._kept:
            with self._context.database.read() as connection:
                self._kept[trial_id] = log_limits.kept(connection, trial_id)
        return self._kept[trial_id]

    def _sentence(self, left_out: int) -> str:
        half = f"{self._half / _MIB:.3g} MiB"
        return (
            f"{left_out / _MIB:.1f} MiB so far. Of a trial's output the first and the last {half} are kept. Print "
            "less, or write to a file in the working directory what you need all of ...]"
        )
