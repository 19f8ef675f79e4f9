"""That torch's functions err by ≤ 4 ulp is an assumption of networks that evaluate one, and of no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sumformer import construct, verify
from sumformer.certificates.certificate import CERTIFICATE_FILE, TORCH_FUNCTIONS

WITHOUT: list[tuple[str, dict[str, Any]]] = [
    ("x - mean(y)**2", {}),
    ("mean(sigmoid((x-y)/0.5))", {}),  # interpolated
    ("exp(x*mean(y))", {"n": 2, "route": "symmetric"}),
    ("abs(x)*max(y)", {"n": 2, "route": "grid"}),
]
WITH: list[tuple[str, dict[str, Any]]] = [
    ("exp(mean(y))*x", {}),
    ("mean(exp(y))", {}),
    ("mean(sin(x)*y)", {}),
    ("norm(x)*mean(y)", {"box": (1, 2)}),
    ("sum(exp(-(x-y)**2)*y)/sum(exp(-(x-y)**2))", {}),  # exp(−x²) and exp(−y²) are factors
    ("exp(x)*max(y)", {"n": 2, "route": "grid"}),
]


@pytest.mark.parametrize(("source", "options"), [*WITHOUT, *WITH])
def test_it_is_named_where_one_is_evaluated(source: str, options: dict[str, Any], tmp_path: Path):
    c = construct(source, epsilon=0.9 if options.get("route") == "grid" else 1e-2, **{"d": 1, **options})
    used = (source, options) in WITH
    assert (TORCH_FUNCTIONS in c.certificate.assumptions) == used
    c.save(tmp_path)
    assert verify(tmp_path, attack=False).verified
    path = tmp_path / CERTIFICATE_FILE
    record = json.loads(path.read_text())
    record["assumptions"] = [text for text in record["assumptions"] if text != TORCH_FUNCTIONS]
    record["assumptions"] += [] if used else [TORCH_FUNCTIONS]  # more than is needed may be assumed
    path.write_text(json.dumps(record))
    assert verify(tmp_path, attack=False).verified == (not used)
