"""Who counts in which number: a stream in its own, each launch of a graph in one that no other has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
import torch

from sumformer.kernels import counters

DEVICE = torch.device("cuda", 0)


@pytest.fixture
def machine(monkeypatch):
    """A device whose memory is the machine's; what is to happen next stands in the dictionary."""
    now = {"stream": 7, "capturing": False}
    monkeypatch.setattr(counters, "_of_streams", {})
    monkeypatch.setattr(counters, "_for_graphs", {})
    monkeypatch.setattr(counters, "_MOST", 3)
    monkeypatch.setattr(counters, "current_stream", lambda _: now["stream"])
    monkeypatch.setattr(counters, "_zeros", lambda _, size: torch.zeros(size, dtype=torch.int32))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: now["capturing"])
    fresh = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *size, device=None, **how: fresh(*size, **how))
    return now


def test_a_stream_keeps_its_own(machine):
    first = counters.counter(DEVICE)
    assert first.shape == (1,)
    assert counters.counter(DEVICE) is first
    machine["stream"] = 8
    second = counters.counter(DEVICE)
    assert second.data_ptr() != first.data_ptr()
    assert counters.counter(torch.device("cuda", 1)).data_ptr() != second.data_ptr()
    assert counters.counter(DEVICE) is second


def test_threads_that_come_at_once_get_the_same(machine, monkeypatch):
    def slowly(_, size):
        sleep(0.01)
        return torch.empty(size, dtype=torch.int32)

    monkeypatch.setattr(counters, "_zeros", slowly)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: counters.counter(DEVICE), range(8)))
    assert len({t.data_ptr() for t in found}) == 1


def test_each_launch_of_a_graph_has_another_until_there_are_no_more(machine):
    eager = counters.counter(DEVICE)
    machine["capturing"] = True
    found = [counters.counter(DEVICE) for _ in range(5)]
    places = {t.data_ptr() for t in (eager, *found)}
    assert len(places) == 6
    ours = counters._for_graphs[DEVICE][0]
    inside = [ours.data_ptr() <= t.data_ptr() < ours.data_ptr() + 4 * ours.numel() for t in found]
    assert inside == [True, True, True, False, False]
    assert all(t.shape == (1,) and t.data_ptr() % 16 == ours.data_ptr() % 16 for t in found[:3])


def test_a_graph_that_comes_first_writes_its_own(machine):
    machine["capturing"] = True
    found = [counters.counter(DEVICE) for _ in range(2)]
    assert [t.tolist() for t in found] == [[0], [0]]
    assert found[0].data_ptr() != found[1].data_ptr()
    assert not counters._of_streams
    assert not counters._for_graphs


def test_without_a_device_it_is_just_0():
    assert counters.counter(torch.device("cpu")).tolist() == [0]
