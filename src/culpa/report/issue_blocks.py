"""The parts of a bug report, each a piece of Markdown in which nothing foreign acts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from culpa.model import ExperimentOutcome, FactorStatus, Trial
from culpa.report import clean, guard_words, incident_words, words
from culpa.report.arms import arm_table
from culpa.report.asked_arms import ASKED_HEADINGS, asked_arms, asked_cells
from culpa.report.asked_text import asked_in
from culpa.report.environment_text import environment_lines, fact
from culpa.report.excerpts import ShownLine, around
from culpa.report.issue_forms import Block, Form
from culpa.report.issue_limits import Limits
from culpa.report.located_lines import located_lines
from culpa.report.markup import Markdown, cell, code, fence, link, table, text
from culpa.report.measured import measured_section
from culpa.report.smallest import reproduced, smallest_lines
from culpa.report.source import ReportSource

T = TypeVar("T")
_LEVEL_WIDTH = 60
_EVENT_WIDTH = 300


class Blocks:
    """All parts for one run within some limits; `cut` says in words what was left out."""

    def __init__(self, source: ReportSource, form: Form, limits: Limits) -> None:
        self._source = source
        self._experiment = source.experiment
        self._form = form
        self._limits = limits
        self.cut: dict[str, None] = {}

    def render(self, name: Block) -> str:
        """The part with its heading, if it has one; empty where there is nothing to say."""
        parts: Mapping[Block, Callable[[], str]] = {
            "environment": self._environment,
            "summary": self._summary,
            "reproduction": self._reproduction,
            "error": self._error,
            "arms": self._arms,
            "finding": self._finding,
            "measured": self._measured,
            "ruled_out": self._ruled_out,
            "not_ruled_out": self._not_ruled_out,
            "known_issues": self._known_issues,
            "made_with": self._made_with,
            "checklist": self._checklist,
            "version": self._version,
            "system": self._system,
            "backends": self._backends,
            "hardware": self._hardware,
            "model": self._model,
            "first_bad": self._first_bad,
        }
        return parts[name]()

    # --- the environment ---

    def _environment(self) -> str:
        lines = [line[: self._limits.line_width] for line in environment_lines(self._source)]
        shown = lines[: self._limits.settings]
        self._note_cut("facts of the environment", len(shown), len(lines))
        summary = "Collected by culpa; where the form asks for a script of the engine, add its output"
        return _details(summary, fence("\n".join(shown), "text"))

    def _version(self) -> str:
        return text(words.engine(self._experiment))

    def _system(self) -> str:
        system = " ".join(filter(None, (fact(self._source, "os"), fact(self._source, "kernel"))))
        return text(system or "not recorded")

    def _backends(self) -> str:
        gpus = fact(self._source, "gpus")
        if not gpus:
            return text("not recorded")
        return text("CPU" if gpus.startswith("none") else "CUDA")

    def _hardware(self) -> str:
        found = [fact(self._source, name) for name in ("gpus", "cpu", "memory")]
        return text(", ".join(filter(None, found)) or "not recorded")

    def _model(self) -> str:
        told = self._source.failing()
        settings = (
            dict(told.incident.diagnosis.configuration)
            if told and told.incident and told.incident.diagnosis
            else {}
        )
        return code(str(settings["model"])) if settings.get("model") else text("see the command below")

    # --- what is wrong ---

    def _summary(self) -> str:
        experiment = self._experiment
        lines = [f"**{self._sentence(words.headline(experiment))}**", ""]
        if experiment.engine == "culpa-lab":
            lines += [
                "This is culpa's reference engine with a fault switched on: an example, nothing to file.",
                "",
            ]
        hunted, root = experiment.hunted, experiment.root
        if hunted is not None:
            what = incident_words.SYMPTOMS.get(hunted.symptom, words.symptom(hunted))
            lines.append(f"- What happens: {self._sentence(what)}")
            lines.append(f"- First to fail: **{text(words.place(hunted))}**")
            if hunted.event:
                lines.append(f"- Error: {code(hunted.event, _EVENT_WIDTH)}")
        if root is not None and root.gpu is not None:
            lines.append(f"- GPU: {self._sentence(incident_words.gpu(replace(root.gpu, why='')))}")
        lines.append(f"- How often: {self._sentence(words.baseline_sentence(experiment))}")
        if experiment.conclusion.outcome is ExperimentOutcome.NO_FAILURE:
            lines += [
                f"- {self._sentence(sentence)}"
                for sentence in words.exclusion_sentences(words.passing(experiment))
            ]
        if experiment.interrupted:
            lines.append("- The run was interrupted: this is what was known by then.")
        lines += [f"- {self._sentence(one)}" for one in self._listed("notes", experiment.notes)]
        return "\n".join(lines)

    def _reproduction(self) -> str:
        commands = self._experiment.commands
        failing = commands.failing if commands else self._experiment.launch.command_line()
        smallest = reproduced(self._source.minimization)
        if smallest is not None:
            lines, whole = smallest_lines(smallest, self._limits.files, self._limits.command)
            self.cut.update({} if whole else {"the files of the reproduction": None})
            return "\n".join(lines)
        lines = ["#### Minimal command", "", self._command(failing), ""]
        if commands is None or not commands.failing:
            return "\n".join(lines).rstrip()
        lines += self._requests(commands.failing_request, self._experiment.trial(commands.failing_trial))
        if commands.passing:
            change = words.listing(words.setting(one.name, one.safe) for one in commands.differing)
            with_change = f" with {text(change)}" if change else ""
            lines += [
                "",
                f"The nearest command that passed{with_change} (a contrast, no solution):",
                "",
                self._command(commands.passing),
            ]
            if commands.passing_request and commands.passing_request != commands.failing_request:
                lines += ["", f"asked: {self._sentence(commands.passing_request)}"]
        return "\n".join(lines)

    def _requests(self, request: str, trial: Trial | None) -> list[str]:
        lines = [f"What was asked: {self._sentence(request)}"] if request else []
        counted = asked_in(trial) if trial is not None else ""
        if counted:
            lines += ["", f"In trial {trial.id if trial else ''} these were {text(counted)}."]
        elif not request:
            lines.append("It fails before it is asked anything.")
        return lines

    def _error(self) -> str:
        root = self._experiment.root
        if root is None:
            return ""
        lines = ["#### Error text", ""]
        if root.async_stack:
            lines += [
                "The stack is asynchronous: it shows where the error was noticed, not what caused it.",
                "",
            ]
        told = self._source.trial(root.trial)
        logs = [log for log in told.logs if log.lines] if told else []
        room = self._limits.log_lines
        for place, log in enumerate(logs):  # a short log leaves its share to the next
            chosen = around(log.lines, max(room // (len(logs) - place), 2))
            room -= len(chosen)
            self._note_cut(f"lines of {log.name}", len(chosen), log.total)
            shown = "\n".join(self._log_lines(chosen))
            lines += [f"{code(log.name)}, trial {root.trial}:", "", fence(shown, "text"), ""]
        if not logs:
            excerpt = root.excerpt or ((root.event.line, root.event.text),)
            shown = "\n".join(
                line[: self._limits.line_width] for _, line in excerpt[: self._limits.log_lines]
            )
            lines += [fence(shown, "text"), ""]
        lines += [f"- Xid {self._sentence(told)}" for told, _ in incident_words.xids(root.xids)]
        lines += [f"- {self._sentence(words.sentence(root.cascade))}"] if root.cascade else []
        lines += [
            f"- Still missing: {self._sentence(one)}"
            for one in self._listed("missing evidence", root.missing)
        ]
        return "\n".join(lines).rstrip()

    def _log_lines(self, lines: Sequence[ShownLine]) -> list[str]:
        shown: list[str] = []
        last = 0
        for line in lines:
            if last and line.number > last + 1:
                shown.append(f"... {line.number - last - 1} lines left out ...")
            mark = ">" if line.role == "root" else " "
            body = line.text
            if len(body) > self._limits.line_width:
                body = f"{body[: self._limits.line_width]}…"
            shown.append(f"{mark} {line.number:>5}  {body}".rstrip())
            last = line.number
        return shown

    # --- what was tried ---

    def _arms(self) -> str:
        asked = asked_arms(self._experiment)
        lines: list[str] = []
        if asked is not None:
            rows = [
                [
                    text(row.name),
                    *(_level(name, level) for name, level in zip(asked.columns, row.levels, strict=True)),
                    *asked_cells(row),
                ]
                for row in asked.rows[: self._limits.arms]
            ]
            self._note_cut("asked arms", len(rows), len(asked.rows))
            header = ["arm", *asked.columns, *ASKED_HEADINGS]
            lines += [
                "#### Arms",
                "",
                table(header, rows, ("tokens/s", "KV tokens")),
                "",
                '"fails otherwise" is another failure than the one reported: a shift of the symptom, no workaround.',
                "",
            ]
        if not self._experiment.trials:
            return "\n".join(lines)
        every = self._all_arms()
        if asked is None:
            return "\n".join(["#### Arms", "", every])
        return "\n".join([*lines, _details("All configurations that were tried", every)])

    def _all_arms(self) -> str:
        arms = arm_table(self._experiment)
        rest = ["other factors"] if arms.columns and arms.without_column else []
        numeric = ("requests", "tokens", "minutes")
        header = [
            "arm",
            *arms.columns,
            *rest,
            "outcome",
            "what failed",
            *numeric,
            "a pass excludes",
            "trials",
        ]
        chosen = arms.rows[: self._limits.arms]
        self._note_cut("configurations", len(chosen), len(arms.rows))
        rows = [
            [
                self._sentence(row.arm),
                *(_level(name, level) for name, level in zip(arms.columns, row.levels, strict=True)),
                *([text(row.others)] if rest else []),
                Markdown(f"**{row.outcomes}**" if row.outcomes.startswith("fail") else text(row.outcomes)),
                Markdown("; ".join(cell(failed, 200) for failed in row.failed[:3])),
                f"{row.requests:,}",
                f"{row.tokens:,}",
                f"{row.seconds / 60:.1f}",
                row.excludes,
                ", ".join(str(number) for number in row.trials[:12]),
            ]
            for row in chosen
        ]
        note = "Minutes are those under requests. A pass excludes, at 95%, faults that show more often than it says."
        return f"{table(header, rows, numeric)}\n\n{note}"

    def _finding(self) -> str:
        findings = self._experiment.conclusion.findings
        if not findings:
            return ""
        lines = ["#### What the failure needs", ""]
        for finding in findings:
            lines += [self._sentence(words.claim(finding, alone=len(findings) == 1)), ""]
            lines += [
                f"- {self._sentence(one)}" for one in self._listed("conditions", words.support(finding))
            ]
            lines.append(f'- "{finding.level.value}" means: {words.LEVEL_MEANING[finding.level]}.')
            lines.append("")
            lines += located_lines(finding, self._sentence)
        for watched in guard_words.silent(self._experiment):
            lines += [self._sentence(" ".join(guard_words.unlocated(watched))), ""]
        lines += ["No root cause is claimed: the trials say what the failure needs, not why."]
        return "\n".join(lines)

    def _measured(self) -> str:
        return measured_section(self._source)

    def _ruled_out(self) -> str:
        statuses = self._experiment.conclusion.statuses
        out = [one for one in statuses if one.status == "out"]
        masking = [one for one in statuses if one.status == "masking"]
        if not out and not masking:
            return ""
        lines = ["#### Ruled out", ""]
        lines += [_status(one) for one in self._listed("factors that were ruled out", out)]
        lines += [f"{_status(one)} It hides the failure; that does not remove it." for one in masking]
        return "\n".join(lines)

    def _not_ruled_out(self) -> str:
        experiment = self._experiment
        untested = [one for one in experiment.conclusion.statuses if one.status == "untested"]
        lines = [
            f"- {self._sentence(one)}"
            for one in self._listed("open points", experiment.conclusion.not_excluded)
        ]
        lines += [_status(one) for one in self._listed("untested factors", untested)]
        for failure in self._listed("other failures", experiment.other_failures):
            levels = words.listing(
                words.setting(name, clean.value(name, level)) for name, level in failure.levels
            )
            under = f" with {text(levels)}" if levels else ""
            note = f": {self._sentence(failure.note)}" if failure.note else ""
            lines.append(f"- another failure, {code(failure.signature.describe(), 200)}{under}{note}")
        left_out = [f"{code(one.name)}: {self._sentence(one.reason)}" for one in experiment.left_out]
        body = "\n".join(["#### Not ruled out", "", *lines]) if lines else ""
        if not left_out:
            return body
        listed = "\n".join(f"- {one}" for one in self._listed("left-out factors", left_out))
        folded = _details(f"{len(left_out)} factors were left out, and so not tested", listed)
        return f"{body}\n\n{folded}".strip()

    def _known_issues(self) -> str:
        root = self._experiment.root
        if root is None or not root.known_issues:
            return ""
        lines = ["#### Reports that look alike", ""]
        for issue in self._listed("known issues", root.known_issues):
            what = (
                f"the same: {issue.why}" if issue.match else f"near, but differs: {'; '.join(issue.differs)}"
            )
            lines.append(f"- {link(issue.url)} {self._sentence(issue.title)} ({self._sentence(what)})")
        return "\n".join(lines)

    def _first_bad(self) -> str:
        return text("not searched for")

    def _checklist(self) -> str:
        # What a person has to have done is for that person to tick.
        return "\n".join(f"- [ ] {line}" for line in self._form.checklist)

    def _made_with(self) -> str:
        experiment = self._experiment
        trials = words.plural(len(experiment.trials), "trial")
        took = words.duration(experiment.elapsed_seconds)
        lines = [f"Isolated by trials with culpa {text(experiment.culpa_version)}: {trials} in {took}."]
        taken = self._source.redactions
        if taken:
            parts = ", ".join(f"{one.words} ({one.count})" for one in taken)
            lines.append(f"Taken out before this was written: {text(parts)}.")
        if any(one.kind not in ("secret", "prompt") for one in taken):
            lines.append("An alias stands for the same thing wherever it occurs.")
        return " ".join(lines)

    # --- small things ---

    def _sentence(self, raw: str) -> Markdown:
        if len(raw) > self._limits.sentence:
            self.cut.setdefault("long sentences")
            raw = f"{raw[: self._limits.sentence]}…"
        return text(raw)

    def _command(self, command: str) -> Markdown:
        if len(command) > self._limits.command:
            self._note_cut("characters of a command", self._limits.command, len(command))
            command = f"{command[: self._limits.command]} …"
        return fence(command, "sh")

    def _listed(self, what: str, items: Sequence[T]) -> Sequence[T]:
        shown = items[: self._limits.items]
        self._note_cut(what, len(shown), len(items))
        return shown

    def _note_cut(self, what: str, shown: int, total: int) -> None:
        if shown < total:
            self.cut.setdefault(f"{what}: {shown:,} of {total:,} shown")


def _status(status: FactorStatus) -> str:
    levels = f" ({_level(status.name, status.suspect)} as launched, {_level(status.name, status.safe)} safe)"
    reason = f": {text(status.reason)}" if status.reason else ""
    return f"- {code(status.name)}{levels}{reason}."


def _level(name: str, level: str) -> Markdown:
    return cell(clean.value(name, level), _LEVEL_WIDTH) or text("unset")


def _details(summary: str, body: str) -> str:
    return f"<details>\n<summary>{text(summary)}</summary>\n\n{body}\n\n</details>"
