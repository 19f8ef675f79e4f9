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
