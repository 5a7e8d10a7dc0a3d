"""The live view of a terminal: what runs now, what is believed, and the trials so far as a matrix."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from culpa.model import Belief, Experiment, Factor, Plan, Trial, TrialProgress, TrialStarted
from culpa.report import clean, words
from culpa.report.matrix import ASCII, UNICODE, Column, legend, matrix

REFRESH_PER_SECOND = 4
_SETS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ViewState:
    """All that is on the screen. Replaced as a whole, so that the refreshing thread never sees half of it.

    `began` and `trial_began` are readings of the view's clock.
    """

    plan: Plan
    began: float
    factors: tuple[Factor, ...] = ()
    columns: tuple[Column, ...] = ()
    running: TrialStarted | None = None
    trial_began: float = 0.0
    progress: TrialProgress | None = None
    belief: Belief = field(default_factory=Belief)
    conclusion: str = ""


class LiveView:
    """Draws a state into whatever room the console has."""

    def __init__(self, state: ViewState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines that fit the console: nothing wraps, nothing scrolls."""
        width = options.max_width
        height = max(console.size.height - 1, 8)
        signs = ASCII if options.ascii_only else UNICODE
        head = [_cut(line, width) for line in self._head()]
        lines = [*head, Text("")]
        picture = matrix(
            self._state.factors,
            self._state.columns,
            self._weights(),
            width=width,
            height=height - len(lines) - 1,
            signs=signs,
        )
        if picture:
            lines += [*picture, _cut(Text(legend(signs), style="dim"), width)]
        for line in lines[:height]:
            line.no_wrap = True
            yield line

    def _head(self) -> Iterator[Text]:
        state = self._state
        now = self._clock()
        title = [
            _engine(state.plan),
            words.plural(len(state.factors), "factor"),
            words.duration(now - state.began),
        ]
        yield Text.assemble(("culpa  ", "bold"), clean.line(", ".join(title)))
        if state.conclusion:
            yield Text(clean.line(state.conclusion), style="bold")
        elif state.running is not None:
            yield from self._running(state.running, now)
        for found, chance in state.belief.sets[:_SETS_SHOWN]:
            share = words.probability(chance).rjust(10)
            yield Text.assemble((share, "bold"), f"  {clean.line(words.names(found))}")

    def _running(self, running: TrialStarted, now: float) -> Iterator[Text]:
        state = self._state
        seconds = words.duration(now - state.trial_began)
        phase, detail = (state.progress.phase, state.progress.detail) if state.progress else ("", "")
        yield Text.assemble((f"trial {running.id}  ", "bold"), clean.line(f"{running.arm}: {running.reason}"))
        yield Text(f"  {clean.line(f'{seconds}, {phase}' if phase else seconds)}", style="cyan")
        yield Text(f"  {clean.line(detail)}", style="dim")
        yield Text(f"  {self._left(running, now)}", style="dim")

    def _left(self, running: TrialStarted, now: float) -> str:
        state = self._state
        parts = []
        if running.trials_left is not None:
            parts.append(words.plural(running.trials_left, "trial"))
        if running.seconds_left is not None:
            parts.append(words.duration(max(running.seconds_left - (now - state.trial_began), 0.0)))
        limits = f"left at most: {', '.join(parts)}" if parts else "no limit of trials or time"
        expected = state.belief.trials_left
        if expected is None and not state.columns[1:]:
            expected = state.plan.predicted_trials
        guess = f"; about {words.plural(expected, 'more trial')} expected" if expected is not None else ""
        return limits + guess

    def _weights(self) -> dict[str, float]:
        """The probability that each factor is in the set, as far as the best sets tell."""
        weights: dict[str, float] = {}
        for found, chance in self._state.belief.sets:
            for name in found:
                weights[name] = weights.get(name, 0.0) + chance
        return weights


class RichLive:
    """Keeps a `LiveView` on the screen, redrawn at most four times a second. Notes scroll by above it."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._state: ViewState | None = None
        self._live: Live | None = None

    def started(self, plan: Plan, earlier: Sequence[Trial] = ()) -> None:
        """Take the screen."""
        columns = tuple(Column(trial.id, trial.configuration, trial.outcome) for trial in earlier)
        self._state = ViewState(plan, self._clock(), factors=plan.factors, columns=columns)
        self._live = Live(
            console=self._console,
            get_renderable=self.view,
            refresh_per_second=REFRESH_PER_SECOND,
            vertical_overflow="crop",
        )
        self._live.start()

    def view(self) -> LiveView | Text:
        """What is on the screen now."""
        return LiveView(self._state, self._clock) if self._state is not None else Text("")

    def trial_started(self, event: TrialStarted) -> None:
        """A new column, still open."""
        if self._state is not None:
            self._state = replace(
                self._state,
                factors=event.factors or self._state.factors,
                columns=_with(self._state.columns, Column(event.id, event.configuration)),
                running=event,
                trial_began=self._clock(),
                progress=None,
            )

    def trial_progress(self, event: TrialProgress) -> None:
        """Shown at the next redraw."""
        if self._state is not None:
            self._state = replace(self._state, progress=event)

    def trial_finished(self, trial: Trial) -> None:
        """The column gets its outcome."""
        if self._state is not None:
            column = Column(trial.id, trial.configuration, trial.outcome)
            self._state = replace(
                self._state, columns=_with(self._state.columns, column), running=None, progress=None
            )

    def belief(self, belief: Belief) -> None:
        """Shown at the next redraw."""
        if self._state is not None:
            self._state = replace(self._state, belief=belief)

    def note(self, text: str) -> None:
        """Printed above the view, where it stays."""
        self._console.print(Text(clean.line(f"note: {text}")))

    def finished(self, experiment: Experiment) -> None:
        """The last picture stays on the screen."""
        if self._state is not None:
            done = f"done: {words.plural(len(experiment.trials), 'trial')}"
            self._state = replace(self._state, running=None, progress=None, conclusion=done)
        self.close()

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _engine(plan: Plan) -> str:
    return " ".join(part for part in (plan.engine, plan.engine_version) if part)


def _with(columns: tuple[Column, ...], column: Column) -> tuple[Column, ...]:
    """The columns with this one in its place: a trial that is judged again keeps it."""
    if any(other.id == column.id for other in columns):
        return tuple(column if other.id == column.id else other for other in columns)
    return (*columns, column)


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
