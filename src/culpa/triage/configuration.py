"""The configuration that an engine ran with, as its log tells it, and which engine of which release it is."""

import re
import shlex
from collections.abc import Iterator
from enum import IntEnum

from culpa.triage.lines import LogLine
from culpa.triage.pairs import pairs
from culpa.triage.settings import Kind, Setting, load_settings

Value = str | int | float | bool

_DUMPS = (
    ("non-default args: {", "asked"),
    ("server_args=ServerArgs(", "effective"),
    ("server_args=PortArgs(", ""),
    ("with config: ", "effective"),
    ("args: Namespace(", "effective"),
    ("LLM Args: ", "effective"),
    ("Args { ", "effective"),
)
_LAUNCH = re.compile(
    r"(?:^|[\s/\"'`])(?:vllm serve|vllm\.entrypoints\.[\w.]{1,60}|sglang\.launch_server|sglang serve|llama-server|"
    r"trtllm-serve|text-generation-launcher|transformers serve)(?=\s|$)"
)
_ENVIRONMENT = re.compile(
    r"\b([A-Z][A-Z0-9_]{3,60})['\"]?(?:=|: {1,2})(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s\"';)}]{1,200})"
)
_ENV_WORDS = ("vllm_", "sglang_", "cuda_")
_SPEC_METHOD = re.compile(r"['\"]?method['\"]?\s{0,2}[:=]\s{0,2}['\"]?([\w-]{1,40})")
_SPEC_TOKENS = re.compile(r"['\"]?num_spec(?:ulative)?_tokens['\"]?\s{0,2}[:=]\s{0,2}(\d{1,4})")
_NESTED_GRAPHS = re.compile(
    r"['\"]?cudagraph_mode['\"]?\s{0,2}[:=]\s{0,2}<?['\"]?(?:CUDAGraphMode\.)?([A-Z_]{3,30})"
)
_RUST_SOME = re.compile(r"^Some\((.{0,200})\)$")
_LAUNCH_WORDS = (
    "vllm serve",
    "vllm.entrypoints",
    "sglang",
    "llama-server",
    "trtllm-serve",
    "-launcher",
    "transformers serve",
)
_PREFIX_ENGINES = {"llamacpp": "llama.cpp"}
_MAX_SPEAKING = 64
_MAX_CONTINUED = 60
_MAX_VALUES = 4
_NO = frozenset({"none", "null", "", "{}", "[]"})

#: What must be in a line, in lower case, for it to say anything of a configuration.
DUMP_LITERALS = (
    "non-default args:", "server_args=", "with config: ", "args: namespace(", "llm args: ", "args { ",
    *_LAUNCH_WORDS, *_ENV_WORDS,
)  # fmt: skip


class _Source(IntEnum):
    DEFAULT = 0
    LAUNCH = 1
    ASKED = 2
    EFFECTIVE = 3
    SAID = 4


class ConfigurationReader:
    """Follows a log; what an engine says that it chose counts more than its dump, the dump more than the launch."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[_Source, Value]] = {}
        self._several: dict[str, list[str]] = {}
        self._spoken: dict[str, int] = {}
        self._words = 0
        self._versions: dict[str, str] = {}
        self._prints_differences = False
        self._launch: list[str] = []

    def note(self, line: LogLine, lowered: str) -> None:
        """Learn from any line; `lowered` is its text in lower case."""
        text = line.text
        if not self.engine_known:
            self._speaker(line, lowered)
        for named in load_settings().releases:
            if any(literal in lowered for literal in named.literals) and (match := named.regex.search(text)):
                version = next(value for value in match.groups() if value)
                self._versions[named.engine] = version.rstrip(".")
                self._speaks(named.engine)
        self._dump(text, lowered)
        self._command(text, lowered)
        for rule in load_settings().said:
            if any(literal in lowered for literal in rule.literals) and (match := rule.regex.search(text)):
                value = rule.value or next((value for value in match.groups() if value), "")
                self._said(rule.key, value, number=rule.number, strong=rule.strong)

    def note_speaker(self, engine: str) -> None:
        """A line that begins as this engine's lines do."""
        self._speaks(_PREFIX_ENGINES.get(engine, engine))

    @property
    def engine_known(self) -> bool:
        """Whether so many lines have named an engine that no more need to be asked."""
        return self._words >= _MAX_SPEAKING

    @property
    def unfinished(self) -> bool:
        """Whether a launch command goes on in the next line."""
        return bool(self._launch)

    @property
    def engine(self) -> str | None:
        """The engine that most lines are of or speak of; None if there is none."""
        if not self._spoken:
            return None
        if "ollama" in self._spoken:
            return "ollama"  # llama.cpp runs inside it and speaks more
        return max(self._spoken, key=lambda engine: self._spoken[engine])

    @property
    def version(self) -> str | None:
        """The release of that engine, as the log prints it."""
        return self._versions.get(self.engine or "")

    def values(self) -> dict[str, Value]:
        """The effective configuration; only what the log shows, and the defaults of what it would have shown."""
        found = {key: value for key, (_, value) in self._values.items()}
        if self._prints_differences:
            for setting in load_settings().settings:
                if setting.default is not None and setting.key not in found:
                    value = _typed(setting.default, setting.kind)
                    if value is not None:
                        found[setting.key] = value
        order = [setting.key for setting in load_settings().settings]
        return dict(
            sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
        )

    # -- reading -------------------------------------------------------------------------------------------

    def _speaker(self, line: LogLine, lowered: str) -> None:
        for named in load_settings().speaks:
            if any(literal in lowered for literal in named.literals) and named.regex.search(line.text):
                self._speaks(named.engine)

    def _speaks(self, engine: str) -> None:
        self._spoken[engine] = self._spoken.get(engine, 0) + 1
        self._words += 1

    def _dump(self, text: str, lowered: str) -> None:
        for marker, source in _DUMPS:
            start = text.find(marker)
            if start < 0 or not source:
                continue
            if marker == "with config: " and "engine (v" not in lowered:
                continue
            rank = _Source.ASKED if source == "asked" else _Source.EFFECTIVE
            if source == "asked":
                self._prints_differences = True
            for key, value in pairs(text[start + len(marker) :]):
                self._set_by_name(key, value, rank)
            return

    def _set_by_name(self, key: str, value: str, source: _Source) -> None:
        found = load_settings().by_name.get(key)
        if found is not None:
            self._set(found[0], _plain(value), source, negated=found[1])
        if key in ("speculative_config", "compilation_config"):
            self._nested(value, source)

    def _nested(self, value: str, source: _Source) -> None:
        if match := _SPEC_TOKENS.search(value):
            self._put("spec_tokens", int(match[1]), source)
        if match := _NESTED_GRAPHS.search(value):
            self._put("cudagraph_mode", match[1], source)

    def _set(self, setting: Setting, text: str, source: _Source, *, negated: bool = False) -> None:
        value = _typed(text, setting.kind)
        if value is None:
            return
        if isinstance(value, bool) and negated:
            value = not value
        self._put(setting.key, value, source)

    def _put(self, key: str, value: Value, source: _Source) -> None:
        known = self._values.get(key)
        if known is None or source >= known[0]:
            self._values[key] = (source, value)

    def _said(self, key: str, text: str, *, number: bool, strong: bool) -> None:
        source = _Source.SAID if strong else _Source.LAUNCH
        if number:
            self._put(key, int(text.replace(",", "")), source)
            return
        if text in ("True", "False"):
            self._put(key, text == "True", source)
            return
        if key == "gpu_arch" or (strong and key.endswith("backend")):
            chosen = self._several.setdefault(key, [])
            if text not in chosen and len(chosen) < _MAX_VALUES:
                chosen.append(text)
            text = ", ".join(chosen)
        self._put(key, text, source)

    # -- launches ------------------------------------------------------------------------------------------

    def _command(self, text: str, lowered: str) -> None:
        # PyTorch's own advice names a variable that nobody set.
        if any(word in lowered for word in _ENV_WORDS) and "consider passing" not in lowered:
            for name, value in _ENVIRONMENT.findall(text):
                setting = load_settings().by_env.get(name)
                if setting is not None:
                    self._set(setting, value.strip("\"',"), _Source.LAUNCH)
        if self._launch:
            self._launch.append(text)
        elif any(word in lowered for word in _LAUNCH_WORDS) and (match := _LAUNCH.search(text)):
            self._launch = [text[match.start() :]]
        else:
            return
        if text.rstrip().endswith("\\") and len(self._launch) < _MAX_CONTINUED:
            return
        command = " ".join(part.rstrip().rstrip("\\") for part in self._launch)
        self._launch = []
        self._flags(command)

    def _flags(self, command: str) -> None:
        words = list(_words(command))
        if (
            words[:2] in (["vllm", "serve"], ["sglang", "serve"])
            and len(words) > 2
            and words[2][:1] not in "-"
        ):
            self._set_by_name("model", words[2], _Source.LAUNCH)
        position = 0
        while position < len(words):
            name, given, inline = words[position].partition("=")
            position += 1
            found = load_settings().by_flag.get(name)
            if found is None:
                continue
            setting, negated = found
            value = inline if given else ""
            if not given and position < len(words) and not _is_flag(words[position]):
                value = words[position]
                if setting.kind != "bool" or value.lower() in ("true", "false", "0", "1"):
                    position += 1
                else:
                    value = ""
            if setting.key == "spec_decode":
                self._nested(value, _Source.LAUNCH)
            self._set(setting, value or "True", _Source.LAUNCH, negated=negated)


def _words(command: str) -> Iterator[str]:
    try:
        yield from shlex.split(command[:8192], comments=False)
    except ValueError:
        yield from command[:8192].split()


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not word[1:2].isdigit()


def _plain(value: str) -> str:
    """TGI prints Rust's options."""
    match = _RUST_SOME.match(value)
    return match[1].strip("\"'") if match else value


def _typed(text: str, kind: Kind) -> Value | None:
    """The value in its type; None if the text is none of that kind, or says that the setting is not set."""
    lowered = text.strip().lower()
    if kind == "speculation":
        if lowered in _NO or lowered == "false":
            return False
        match = _SPEC_METHOD.search(text)
        if match:
            return match[1].lower()
        return lowered if re.fullmatch(r"[\w-]{2,30}", lowered) and lowered != "true" else True
    if kind == "presence":
        return lowered not in _NO
    if lowered in _NO:
        return None
    if kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}.get(lowered)
    if kind == "int":
        return int(lowered) if lowered.isascii() and lowered.isdigit() and len(lowered) < 16 else None
    if kind == "number":
        try:
            number = float(lowered[:40])
        except ValueError:
            return None
        return number if number == number and abs(number) != float("inf") else None
    return text.strip()[:200]
