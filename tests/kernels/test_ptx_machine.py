"""The machine that runs PTX in tests notices what a GPU would not forgive."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ptx_machine import launch

from sumformer.kernels import power_sums as module
from sumformer.nn.power_sums import power_sums


@pytest.mark.parametrize("few", [0, module.FEW])
def test_without_barriers_lanes_would_race(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def emulate(programs: int, text: str, arguments: tuple[Any, ...], resident: int, warps: int) -> None:
        launch(programs, text.replace("bar.warp.sync 0xffffffff;", ""), arguments, warps)

    monkeypatch.setattr(module, "_emulated", True)
    monkeypatch.setattr(module, "_launch", emulate)
    monkeypatch.setattr(module, "FEW", few)
    with pytest.raises(AssertionError, match="two lanes"):
        power_sums(torch.rand(1, 100, 2), 5)


COPY = """{ .shared .align 128 .b8 store[128]; mov.u32 lane, %tid.x; mov.u32 mine, store; sub.u32 other, 31, lane;
mad.lo.u32 other, other, 4, mine; mad.lo.u32 mine, lane, 4, mine; mul.wide.u32 place, lane, 4; add.u64 p, place, $1;
add.u64 q, place, $3; cp.async.ca.shared.global [mine+0], [p+0], 4; cp.async.commit_group; FIRST; SECOND;
ld.shared.f32 x, [other+0]; st.global.f32 [q+0], x; }"""
BARRIER, WAIT = "bar.warp.sync 0xffffffff", "cp.async.wait_group 0"


def copied(first: str, second: str) -> tuple[torch.Tensor, torch.Tensor]:
    x, out = torch.arange(32.0), torch.empty(32)
    launch(1, COPY.replace("FIRST", first).replace("SECOND", second), (x, x, out))
    return out, x.flip(0)


def test_a_copy_is_there_for_others_behind_a_barrier_once_it_was_waited_for() -> None:
    assert torch.equal(*copied(WAIT, BARRIER))
    assert copied("cp.async.wait_group 1", BARRIER)[0].isnan().all()
    for first, second in ((BARRIER, WAIT), (WAIT, WAIT)):
        with pytest.raises(AssertionError, match="two lanes"):
            copied(first, second)
    with pytest.raises(AssertionError, match="part ways"):
        copied(WAIT, f"setp.lt.u32 low, lane, 9; @low {BARRIER}")


def test_a_barrier_of_a_warp_is_none_between_warps() -> None:
    begin = (
        "{ .shared .align 128 .b8 store[SIZE]; mov.u32 at, %tid.x; and.b32 at, at, 31; mad.lo.u32 at, at, 4, store; "
    )
    write = "st.shared.f32 [at+0], 0f00000000; "
    x = torch.empty(1)
    launch(1, f"{begin}{write}bar.sync 0; }}".replace("SIZE", "128"), (x, x, x), 1)
    with pytest.raises(AssertionError, match="two lanes"):
        launch(1, f"{begin}{write}{BARRIER}; }}".replace("SIZE", "128"), (x, x, x), 2)
    with pytest.raises(AssertionError, match="shared memory"):
        launch(1, f"{begin}{write}}}".replace("SIZE", "49280"), (x, x, x), 1)
