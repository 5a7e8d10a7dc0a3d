"""The methods that culpa's search is compared with, each from its paper or its documented behaviour."""

from benchmarks.peers.bisect import go_bisect
from benchmarks.peers.covering import covering_ben
from benchmarks.peers.ddmin import ddmin
from benchmarks.peers.hwang import hwang
from benchmarks.peers.one_factor import one_factor
from benchmarks.peers.probdd import probdd
from benchmarks.peers.protocol import Answer, Oracle, OutOfTrials, Peer, Suspects
from benchmarks.peers.quickxplain import quickxplain

PEERS: dict[str, Peer] = {
    "one factor": one_factor,
    "ddmin": ddmin,
    "probdd": probdd,
    "quickxplain": quickxplain,
    "go bisect": go_bisect,
    "hwang (k known)": hwang,
    "covering+ben": covering_ben,
}

__all__ = ["PEERS", "Answer", "Oracle", "OutOfTrials", "Peer", "Suspects"]
