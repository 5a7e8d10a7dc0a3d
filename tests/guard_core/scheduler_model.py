"""A small model of a scheduler and of the workers' tables, written without the mirror: the other side of the property.

Three cache groups share one pool of blocks, as in a hybrid model: two of recurrent state in mode `align`, one of
attention whose kernel blocks are a half of the scheduler's.
"""

from dataclasses import dataclass, field

from culpa_guard import Grant, Group, GroupView, Plan, StepView

BLOCK = 4
RATIO = 2
GROUPS = (
    Group(0, "state", ("gdn.0", "gdn.1"), BLOCK, mode="align"),
    Group(1, "state", ("gdn.2",), BLOCK, mode="align"),
    Group(2, "attention", ("full.3",), BLOCK, ratio=RATIO),
)


@dataclass
class Job:
    """A request: how many tokens are done, and the ids in each group's row, 0 where a state is no longer kept."""

    name: str
    length: int
    done: int = 0
    rows: list[list[int]] = field(default_factory=lambda: [[] for _ in GROUPS])
    fresh: bool = True


@dataclass
class Scheduler:
    """Grants blocks from one pool; frees states that are two steps old, and everything of a finished request."""

    blocks: int
    free: list[int] = field(init=False)
    jobs: dict[str, Job] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = list(range(1, self.blocks))

    def add(self, name: str, length: int) -> None:
        self.jobs[name] = Job(name, length)

    def preempt(self, name: str) -> None:
        job = self.jobs[name]
        self._free(job)
        if not job.fresh:
            self.preempted.append(name)
        self.jobs[name] = Job(name, job.length)

    def schedule(self, chunks: dict[str, int]) -> tuple[Plan, StepView]:
        """A plan for these requests and tokens, and what a right worker would be given for it."""
        grants, scheduled = [], {}
        for name, chunk in chunks.items():
            job = self.jobs[name]
            tokens = min(chunk, job.length - job.done)
            if tokens <= 0 or not self._room(job, tokens):
                continue
            grants.append(Grant(name, self._grant(job, tokens), job.done, replaces=job.fresh))
            scheduled[name] = tokens
            job.fresh = False
        plan = Plan(grants, scheduled, finished=tuple(self.finished), preempted=tuple(self.preempted))
        view = self._view(scheduled)
        self.finished, self.preempted = [], []
        for name, tokens in scheduled.items():
            job = self.jobs[name]
            job.done += tokens
            if job.done >= job.length:
                self._free(job)
                self.finished.append(name)
                del self.jobs[name]
        return plan, view

    def _columns(self, job: Job, tokens: int) -> int:
        return -(-(job.done + tokens) // BLOCK)

    def _room(self, job: Job, tokens: int) -> bool:
        return len(self.free) >= len(GROUPS) * (self._columns(job, tokens) - len(job.rows[2]))

    def _grant(self, job: Job, tokens: int) -> list[list[int]]:
        columns, granted = self._columns(job, tokens), []
        for group, row in zip(GROUPS, job.rows, strict=True):
            new: list[int] = []
            if group.kind == "state":
                # The state before this step is still read; those before that one are given back first.
                keep = max(job.done - 1, 0) // BLOCK
                for column in range(min(keep, len(row))):
                    if row[column]:
                        self.free.append(row[column])
                        row[column] = 0
            for column in range(len(row), columns):
                last = group.kind != "state" or column == columns - 1
                new.append(self.free.pop(0) if last else 0)
            row.extend(new)
            granted.append(new)
        return granted

    def _free(self, job: Job) -> None:
        for row in job.rows:
            self.free.extend(block for block in row if block)

    def _view(self, scheduled: dict[str, int]) -> StepView:
        jobs = [self.jobs[name] for name in scheduled]
        last = [job.done + scheduled[job.name] - 1 for job in jobs]
        states = [
            [job.rows[group][position // BLOCK] for job, position in zip(jobs, last, strict=True)]
            for group in (0, 1)
        ]
        initial = [job.done > 0 for job in jobs]
        table = [[RATIO * block + part for block in job.rows[2] for part in range(RATIO)] for job in jobs]
        size = BLOCK // RATIO
        slots = [
            row[position // size] * size + position % size
            for job, row in zip(jobs, table, strict=True)
            for position in range(job.done, job.done + scheduled[job.name])
        ]
        return StepView(
            tuple(scheduled),
            tuple(scheduled.values()),
            (
                GroupView(0, GROUPS[0].layers, "gdn", states=states[0], has_initial=initial, identity=1),
                GroupView(1, GROUPS[1].layers, "gdn", states=states[1], has_initial=initial, identity=2),
                GroupView(2, GROUPS[2].layers, "attention", table=table, slots=slots, identity=3),
            ),
        )
