"""The guard's mirror beside vLLM's own scheduler: no engine, no model, only the scheduler and its block pool.

    PYTHONPATH=src /path/to/engine/python tests/real/drive_scheduler.py CHECKPOINT [--steps 2500] [--blocks 60]
        [--depth 1] [--seed 0]

A random load with common prefixes, aborts and a pool so small that requests are preempted. `--depth` schedules so many
steps ahead of their results, as pipeline stages do. Prints one JSON object: what happened, and what the mirror found;
every row of the mirror is compared with a worker's table kept in vLLM's own way.
"""

import argparse
import json
import random
import sys
from collections import Counter, deque
from typing import Any

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.attention.backends.utils import record_kv_cache_layout
from vllm.v1.core.kv_cache_utils import get_kv_cache_configs, get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from culpa_guard import Mirror
from culpa_guard.vllm.layout import read_groups
from culpa_guard.vllm.plan import read_plan

BLOCK = 128
LAYERS = 8
COUNTED = (
    "steps",
    "requests",
    "preempted",
    "prefix_hits",
    "aborted",
    "row_differs",
    "state_not_in_row",
    "state_twice",
)


class Load:
    """The scheduler under a random load, and the mirror that follows it."""

    def __init__(self, checkpoint: str, blocks: int, seed: int) -> None:
        self._random = random.Random(seed)
        arguments = EngineArgs(
            model=checkpoint,
            enforce_eager=True,
            max_model_len=4096,
            enable_prefix_caching=True,
            max_num_batched_tokens=512,
            num_gpu_blocks_override=blocks,
            max_num_seqs=16,
        )
        config = arguments.create_engine_config()
        config.cache_config.block_size = config.cache_config.mamba_block_size = BLOCK
        record_kv_cache_layout(config.cache_config, "LBNHC")
        cache = get_kv_cache_configs(config, [_specs()], [_full().page_size_bytes * LAYERS * blocks])[0]
        config.cache_config.num_gpu_blocks = cache.num_blocks
        self.scheduler = Scheduler(
            vllm_config=config,
            kv_cache_config=cache,
            structured_output_manager=StructuredOutputManager(config),
            block_size=BLOCK,
            hash_block_size=BLOCK,
        )
        hashed = get_hash_fn_by_name("sha256")
        init_none_hash(hashed)
        self._hasher = get_request_block_hasher(BLOCK, hashed)
        self._prefixes = [[self._random.randrange(256) for _ in range(3000)] for _ in range(3)]
        self._tables: dict[str, list[list[int]]] = {}
        self.mirror = Mirror(read_groups(cache, [16] * len(cache.kv_cache_groups)), cache.num_blocks)
        self.seen: Counter[str] = Counter()
        self.violations: list[str] = []

    def step(self) -> tuple[Any, ModelRunnerOutput]:
        """Schedule once, let the mirror follow, and make up the results."""
        self._come_and_go()
        output = self.scheduler.schedule()
        self.seen["steps"] += 1
        self.seen["preempted"] += len(output.preempted_req_ids or ())
        self.violations += [str(found) for found in self.mirror.apply(read_plan(output))]
        self._follow(output)
        self._compare(output)
        ids = list(output.num_scheduled_tokens)
        requests = [self.scheduler.requests[name] for name in ids]
        sampled = [
            [self._random.randrange(256)] if one.num_computed_tokens >= one.num_tokens else []
            for one in requests
        ]
        return output, ModelRunnerOutput(
            req_ids=ids,
            req_id_to_index={name: place for place, name in enumerate(ids)},
            sampled_token_ids=sampled,
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[None] * len(ids),
        )

    def _come_and_go(self) -> None:
        while len(self.scheduler.requests) < 10 and self._random.random() < 0.4:
            self.seen["requests"] += 1
            tokens = self._random.choice(self._prefixes)[: self._random.randrange(1, 1500)]
            tokens = tokens + [self._random.randrange(256) for _ in range(self._random.randrange(200))]
            sampling = SamplingParams(max_tokens=self._random.randrange(1, 300), ignore_eos=True)
            sampling.update_from_generation_config({}, 256)
            self.scheduler.add_request(
                Request(
                    request_id=f"r{self.seen['requests']}",
                    prompt_token_ids=tokens,
                    sampling_params=sampling,
                    pooling_params=None,
                    block_hasher=self._hasher,
                )
            )
        if self._random.random() < 0.02 and self.scheduler.requests:
            self.seen["aborted"] += 1
            name = self._random.choice(list(self.scheduler.requests))
            self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)

    def _follow(self, output: Any) -> None:
        """A worker's tables, as its runner keeps them."""
        for new in output.scheduled_new_reqs:
            self.seen["prefix_hits"] += new.num_computed_tokens > 0
            self._tables[new.req_id] = [list(row) for row in new.block_ids]
        cached = output.scheduled_cached_reqs
        for name, blocks in zip(cached.req_ids, cached.new_block_ids, strict=True):
            if blocks is not None and name in cached.resumed_req_ids:
                self._tables[name] = [list(row) for row in blocks]
            elif blocks is not None:
                for row, more in zip(self._tables[name], blocks, strict=True):
                    row.extend(more)

    def _compare(self, output: Any) -> None:
        states: Counter[int] = Counter()
        for name in output.num_scheduled_tokens:
            live = self.mirror.live[name]
            for group, row in zip(self.mirror.groups, self._tables[name], strict=True):
                self.seen["row_differs"] += list(live.rows[group.index]) != row
                if group.kind == "state":
                    (*_, expected) = self.mirror.expected_states(name, group) or [0]
                    self.seen["state_not_in_row"] += not 0 < expected < self.mirror.blocks
                    states[expected] += 1
        self.seen["state_twice"] += sum(count > 1 for count in states.values())


def _full() -> FullAttentionSpec:
    return FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=64, dtype=torch.bfloat16)


def _specs() -> dict[str, Any]:
    state = MambaSpec(
        block_size=BLOCK,
        shapes=((3, 384), (2, 64, 64)),
        dtypes=(torch.bfloat16, torch.float32),
        page_size_padded=_full().page_size_bytes,
        mamba_cache_mode="align",
    )
    return {f"model.layers.{layer}": _full() if layer % 4 == 3 else state for layer in range(LAYERS)}


def main() -> int:
    """Run the load and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    load = Load(arguments.checkpoint, arguments.blocks, arguments.seed)
    ahead: deque[tuple[Any, ModelRunnerOutput]] = deque()
    while load.seen["steps"] < arguments.steps:
        ahead.append(load.step())
        if len(ahead) >= arguments.depth or not ahead[-1][0].total_num_scheduled_tokens:
            load.scheduler.update_from_output(*ahead.popleft())
    print(json.dumps({name: load.seen[name] for name in COUNTED} | {"violations": load.violations[:5]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
