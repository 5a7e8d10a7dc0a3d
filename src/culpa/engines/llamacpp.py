"""llama.cpp's HTTP server: `llama-server`, and the `culpa-llamacpp` launcher for its Python wheel."""

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import Mention, appended, mentions, with_value
from culpa.engines.base import CatalogueAdapter, Prepared, Reading
from culpa.engines.catalogue import Catalogue
from culpa.engines.command import Program, check_programs, find_program, with_sibling
from culpa.engines.errors import BadLaunch
from culpa.engines.tables import FactorTable
from culpa.model import Launch, LeftOut

if TYPE_CHECKING:
    from culpa.host import Machine

PROGRAMS = frozenset({"llama-server", "llama-server.exe", "culpa-llamacpp"})
MODULES = frozenset({"culpa_llamacpp"})
LAUNCHER = frozenset({"culpa-llamacpp", "culpa_llamacpp"})  # these carry a model of their own
MODEL_FILE = ("-m", "--model")
MODEL_ELSEWHERE = (
    *("-hf", "-hfr", "--hf-repo", "-mu", "--model-url", "-dr", "--docker-repo"),
    *("--models-dir", "--models-preset"),
)
MODEL_VARIABLES = (
    "LLAMA_ARG_HF_REPO",
    "LLAMA_ARG_MODEL_URL",
    "LLAMA_ARG_DOCKER_REPO",
    "LLAMA_ARG_MODELS_DIR",
)
VERBOSITY = ("-lv", "--verbosity", "--log-verbosity")
# From this verbosity on the log tells sizes, cache types and the attention path that were really chosen.
TELLING_VERBOSITY = 4
GGUF_MAGIC = b"GGUF"

HelpOf = Callable[[tuple[str, ...], Mapping[str, str], str | None], str | None]


def help_text(argv: tuple[str, ...], environment: Mapping[str, str], cwd: str | None) -> str | None:
    """What the program prints for --help, or None if it can't be asked; takes about as long as its libraries."""
    try:
        done = subprocess.run(
            argv,
            env=dict(environment),
            cwd=cwd,
            capture_output=True,
            timeout=30,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")


class LlamaCppAdapter(CatalogueAdapter):
    """Reads launches of llama.cpp's server. Options that the build does not list are not varied."""

    def __init__(
        self,
        catalogue: Catalogue,
        surrounding: Mapping[str, str] | None = None,
        help_of: HelpOf = help_text,
    ) -> None:
        super().__init__(catalogue, surrounding)
        self._help_of = help_of

    def recognises(self, launch: Launch) -> bool:
        """`llama-server` under any path, `culpa-llamacpp`, `python -m culpa_llamacpp`."""
        return self._program(launch) is not None

    def start_of_arguments(self, launch: Launch) -> int:
        """Behind the program's name."""
        program = self._program(launch)
        return program.arguments if program is not None else 1

    def level_of(self, factor: FactorTable, launch: Launch) -> str:
        """As the catalogue says; whether slots share a KV buffer follows from the slots if nothing says it."""
        level = super().level_of(factor, launch)
        if factor.name == "kv_unified" and level == "default":
            parallel = self.catalogue.factor("parallel")
            slots = self.level_of(parallel, launch) if parallel is not None else "auto"
            return "on" if slots == "auto" else "off"
        return level

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors of this launch. Raises BadLaunch for a program or model file that is not there."""
        program = self._program(launch)
        launch = self._runnable(launch)
        check_programs(launch, program, self.surrounding)
        self._check_model(launch, program)
        reading = super().read(launch, machine)
        text = self._help_of(
            (*launch.argv[: self.start_of_arguments(launch)], "--help"),
            launch.environment(self.surrounding),
            launch.cwd,
        )
        if text is None:
            note = f"{launch.argv[0]} --help gave no answer: options that this build lacks can't be told"
            return Reading(reading.factors, reading.left_out, (*reading.notes, note))
        known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))
        lacking = {
            factor.name: missing
            for factor in reading.factors
            if (missing := self._lacking(factor.name, launch, known)) is not None
        }
        return Reading(
            tuple(factor for factor in reading.factors if factor.name not in lacking),
            (*reading.left_out, *(LeftOut(name, text) for name, text in lacking.items())),
            reading.notes,
        )

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """On 127.0.0.1:port, with metrics, slots and a log that tells what was chosen."""
        engine = self.catalogue.engine
        assert engine.port is not None
        assert engine.host is not None
        launch = self.set_place(engine.port, self._runnable(launch), str(port))
        launch = self.set_place(engine.host, launch, "127.0.0.1")
        for switch in engine.instrumentation:
            launch = self.with_switch(launch, switch)
        launch = self._telling(launch)
        secure = self._value(launch, ("--ssl-key-file",), "LLAMA_ARG_SSL_KEY_FILE") is not None
        prefix = self._value(launch, ("--api-prefix",), "LLAMA_ARG_API_PREFIX") or ""
        base = f"{'https' if secure else 'http'}://127.0.0.1:{port}{prefix.rstrip('/')}"
        return Prepared(launch, base, engine.health, self._api_key(launch))

    def wanted_port(self, launch: Launch) -> int | None:
        """The port of `--port` or LLAMA_ARG_PORT."""
        value = self._value(launch, ("--port",), "LLAMA_ARG_PORT")
        return int(value) if value is not None and re.fullmatch(r"\d{1,5}", value) else None

    # --- helpers -------------------------------------------------------------------------------------------

    def _program(self, launch: Launch) -> Program | None:
        return find_program(launch.argv, PROGRAMS, MODULES)

    def _runnable(self, launch: Launch) -> Launch:
        program = self._program(launch)
        own = program is not None and program.name in LAUNCHER
        return with_sibling(launch, program, self.surrounding) if own else launch

    def _found(self, launch: Launch, flags: tuple[str, ...]) -> list[Mention]:
        return mentions(launch.argv, self.start_of_arguments(launch), self.grammar, valued=flags)

    def _value(self, launch: Launch, flags: tuple[str, ...], variable: str) -> str | None:
        found = self._found(launch, flags)
        return found[-1].value if found else self.context(launch).variable(launch, variable)

    def _check_model(self, launch: Launch, program: Program | None) -> None:
        model = self._value(launch, MODEL_FILE, "LLAMA_ARG_MODEL")
        if model is None:
            elsewhere = self._found(launch, MODEL_ELSEWHERE) or any(
                self.context(launch).variable(launch, name) for name in MODEL_VARIABLES
            )
            embedded = program is not None and program.name in LAUNCHER
            if not elsewhere and not embedded:
                raise BadLaunch(f"{launch.argv[0]}: no model: the launch needs -m FILE (or -hf REPOSITORY)")
            return
        for path in (
            model,
            *(mention.value or "" for mention in self._found(launch, ("-md", "--model-draft"))),
        ):
            file = Path(launch.cwd or ".") / path
            if file.is_dir():
                raise BadLaunch(f"model file {path} is a folder: llama.cpp takes one GGUF file")
            if not file.is_file():
                raise BadLaunch(f"model file {path} does not exist")
            with file.open("rb") as stream:
                if stream.read(4) != GGUF_MAGIC:
                    raise BadLaunch(f"model file {path} is no GGUF file")

    def _lacking(self, name: str, launch: Launch, known: set[str]) -> str | None:
        """Why a factor can't be varied in this build, or None. What the launch mentions itself is varied."""
        entry = self.catalogue.factor(name)
        if entry is None or entry.levels or (entry.flag is None and not entry.on and not entry.off):
            return None
        words = (entry.flag, *entry.flag_aliases) if entry.flag is not None else (*entry.on, *entry.off)
        start = self.start_of_arguments(launch)
        if mentions(
            launch.argv,
            start,
            self.grammar,
            valued=[w for w in words if w],
            switches=words if entry.flag is None else (),
        ):
            return None
        if entry.flag is not None:
            return None if entry.flag in known else f"this build does not list {entry.flag}"
        missing = [side[0] for side in (entry.on, entry.off) if side and side[0] not in known]
        return f"this build does not list {missing[0]}" if missing else None

    def _telling(self, launch: Launch) -> Launch:
        start = self.start_of_arguments(launch)
        if mentions(launch.argv, start, self.grammar, switches=["-v", "--verbose", "--log-verbose"]):
            return launch
        found = self._found(launch, VERBOSITY)
        if not found:
            return launch.with_argv(appended(launch.argv, start, (VERBOSITY[0], str(TELLING_VERBOSITY))))
        value = found[-1].value or ""
        if re.fullmatch(r"\d+", value) and int(value) >= TELLING_VERBOSITY:
            return launch
        return launch.with_argv(with_value(launch.argv, found[-1], str(TELLING_VERBOSITY)))

    def _api_key(self, launch: Launch) -> str | None:
        keys = self._value(launch, ("--api-key",), "LLAMA_API_KEY")
        if keys:
            return keys.split(",")[0]
        file = self._value(launch, ("--api-key-file",), "LLAMA_ARG_API_KEY_FILE")
        if file is None:
            return None
        try:
            lines = (Path(launch.cwd or ".") / file).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise BadLaunch(f"--api-key-file {file} can't be read: {error.strerror}") from None
        return next((line.strip() for line in lines if line.strip() and not line.startswith("#")), None)
