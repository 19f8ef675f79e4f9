"""check of networks that know the places of their tokens: the target as it was written is the one that is proved."""

from __future__ import annotations

from pathlib import Path

import pytest
from tampered import Copy, Sample, put, rewrite, sign

import sumformer
from sumformer.certificates.checker import check
from sumformer.certificates.checker.positions.written import written_failures
from sumformer.targets.target import target

SAMPLES: dict[str, Sample] = {"places": ("sum(max(0, min(1, i-j+1))*y)/i", 1e-3, {"n": 4, "positions": True})}


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tabulated") / "c"
    sumformer.construct("sum(y*max(0, 1-abs(j-i-1)))", 1e-3, n=4, positions=True).save(folder)
    return folder


WRITTEN = [
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))", True),
    ("sum(y[0]*max(0, 1 - abs(x[1] + 1 - y[1])))", True),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))*(1 + (x[1]-1)*(x[1]-2)*(x[1]-3)*(x[1]-4))", True),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1] - 1))) + 1e-9", False),
    ("sum(y[0]*max(0, 1 - abs(y[1] - x[1])))", False),
    ("mean(y[0]*max(0, 1 - abs(y[1] - x[1] - 1)))", False),
    ("x[0]", False),
    (7, False),
]


@pytest.mark.parametrize(("written", "same"), WRITTEN)
def test_a_target_written_otherwise_must_be_the_one_that_is_proved(
    tabulated: Path, tmp_path: Path, written: object, same: bool
) -> None:
    """The certificate speaks of a table over the positions; `written` is what was asked for, and what `load` gives."""
    for file in tabulated.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rewrite(tmp_path / "certificate.json", lambda c: c["constants"].update(written=written))
    assert check(tmp_path).verified is same


def test_positions_of_a_network_that_does_not_know_them(tmp_path: Path) -> None:
    """Taken out of its `Positioned`, the network takes any number for a position, and cells would not bound that."""
    sumformer.construct("sum(abs(x-y)*max(0, j-i))", 0.3, n=3, positions=True, route="grid").save(tmp_path)
    assert check(tmp_path).verified
    bare = sumformer.load(tmp_path).network.network
    bare.save_pretrained(tmp_path)
    assert not check(sign(tmp_path)).verified


# ---- where f exists


@pytest.mark.parametrize(
    "more",
    [
        "0*log(x[1] - 9)",
        "0*log(-2)",
        "0/x[0]",
        "0*(x[0] - 1/2)**(-1)",
        "sqrt(1 - x[1]) - sqrt(1 - x[1])",  # exists at i = 1
        "x[0]**(-0.5) - x[0]**(-0.5)",
    ],
)
def test_what_cancels_must_exist(copy: Copy, more: str) -> None:
    """Canonical forms cancel partial functions; "verified", with an attack error of nan, was the answer."""
    found = check(copy("places").edit("certificate", put("constants", "written")(lambda old: f"{old} + {more}")).folder)
    assert not found.verified
    assert "is not shown to exist at i = " in found.failures[0]


@pytest.mark.parametrize("body", ["0*log(y[1] - x[1])", "0/(y[0] + y[1] - x[1])"])
def test_what_cancels_in_a_sum_must_exist_at_all_pairs(copy: Copy, body: str) -> None:
    def change(old: str) -> str:
        assert "*y[0])" in old
        return old.replace("*y[0])", f"*y[0] + {body})")

    found = check(copy("places").edit("certificate", put("constants", "written")(change)).folder)
    assert not found.verified
    assert ", j = " in found.failures[0]


@pytest.mark.parametrize("more", ["0*log(x[1])", "sqrt(x[0]) - sqrt(x[0])", "0*log(1 + {f})", "0/(x[0] + x[1])"])
def test_what_exists_may_cancel(copy: Copy, more: str) -> None:
    written = put("constants", "written")(lambda f: f"{f} + {more.format(f=f)}")
    found = check(copy("places").edit("certificate", written).folder)
    assert found.verified, found.failures


@pytest.mark.parametrize(
    "source",
    [
        "sum_others(y/(i-j))",  # there is no i = j
        "mean(abs(i-j)*log(1 + y - y**2))",  # intervals alone say 1 + y − y² ≥ 0
        "mean(abs(i-j)/((1 + y - y**2)*(i+j)))",
        "sqrt(1 + x - x**2)*mean(y/(abs(i-j)+1))",
    ],
)
def test_roots_and_ratios_beside_tables_verify(source: str, tmp_path: Path) -> None:
    c = sumformer.construct(source, 1e-3, n=3, positions=True)
    assert "written" in c.certificate.constants
    c.save(tmp_path)
    found = check(tmp_path)
    assert found.verified, found.failures


def test_values_that_another_proof_answers_for_are_not_equal() -> None:
    """log A and log B are both unknown, and 1/10 + log A − log B vanishes."""
    logs = "log(1 + x[0] - x[0]**2)", "log(1 + 2*x[0] - 2*x[0]**2)"
    f = target(" + ".join(logs), n=2, d=2, box="0:1,1:2")
    assert not written_failures(f"{f.source} + {logs[0]} - {logs[0]}", f)
    assert "1/(" in written_failures(f"{f.source} + 0/(1/10 + {logs[0]} - {logs[1]})", f)[0]


@pytest.mark.parametrize("n", [1, 2])
def test_few_places(n: int) -> None:
    f = target("mean(y[0])", n=n, d=2, box="0:1,1:2")
    assert not written_failures("mean(y[0]) + 0/(1 + mean(y[0]))", f)
    assert written_failures("mean(y[0] + 0/(y[0] - x[0] + y[1] - x[1]))", f)
