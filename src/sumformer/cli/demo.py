"""`sumformer demo`: construct two networks, verify them, catch a forgery, race the exact sum, compare modules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from torch import Tensor

from sumformer import nn as snn
from sumformer.certificates.attack import attack
from sumformer.certificates.certificate import CERTIFICATE_FILE, sha256
from sumformer.cli import construct as construct_command
from sumformer.cli import verify as verify_command
from sumformer.cli.output import Json, command, console, messages, print_json
from sumformer.experiments.construction_report import write_report
from sumformer.nn.pretrained import WEIGHTS_FILE, read_tensors
from sumformer.testing import equivariance_error, padding_error
from sumformer.theorems.constructed import Construction
from sumformer.theorems.construction import construct
from sumformer.theorems.verification import verify

Out = Annotated[Path, typer.Option("--out", help="Where the demo writes.")]
BLUR = "sum(exp(-4*norm2(x-y))*y)/sum(exp(-4*norm2(x-y)))"
FIGURE_2 = "x + 7*x**2 + 3*x*sum_others(y)**3"


@command
def demo(out: Out = Path("demo-output"), as_json: Json = False) -> int:
    """The main job, end to end, in under two minutes."""
    quiet = as_json
    console.quiet = quiet
    built = {
        "blur": _construct(BLUR, 1e-3, out / "blur", d=2),
        "figure2": _construct(FIGURE_2, 1e-6, out / "figure2", d=4, n=3),
    }
    verdicts = {}
    for name in built:
        console.print(Rule(Text(f"sumformer verify {out / name}")))
        with messages.status("verifying …"):
            verdicts[name] = verify(out / name)
        verify_command.show(verdicts[name])
    console.print(Rule("one weight changed, hash rewritten"))
    forged = verify(_forge(built["blur"], out / "forged"), attack=False)
    verify_command.show(forged)
    console.print(Rule("100,000 tokens"))
    race = _race(built["blur"], 100_000)
    console.print(
        f"network {race['network_seconds']:.3f} s for {race['n']:,} tokens; {race['baseline']} "
        f"{race['exact_seconds']:.1f} s (timed on {race['queries']:,} queries, scaled to all): "
        f"{race['ratio']:.0f}× faster; largest difference on those queries {race['difference']:.1e}"
    )
    console.print(Rule("the modules on one input"))
    modules = module_rows()
    console.print(module_table(modules))
    console.print(f"reports: {out / 'blur' / 'report.html'} and {out / 'figure2' / 'report.html'}", markup=False)
    console.quiet = False
    good = all(v.verified for v in verdicts.values()) and not forged.verified
    if as_json:
        print_json({"verified": {k: v.verified for k, v in verdicts.items()}, "forgery_caught": not forged.verified,
                    "race": race, "modules": modules})  # fmt: skip
    if not good:
        messages.print(Text("the demo did not go as it should", style="bold red"))
    return 0 if good else 1


def _construct(expression: str, epsilon: float, out: Path, **domain: Any) -> Construction:
    console.print(Rule(Text(f'sumformer construct "{expression}" --epsilon {epsilon:g} --out {out}')))
    with messages.status("constructing and attacking …"):
        construction = construct(expression, epsilon, **domain)
        start = time.perf_counter()
        found = attack(construction.target, construction.network)
        attacked = time.perf_counter()
        construction.save(out)
        write_report(construction, out / "report.html", found)
        spent = {"attack": attacked - start, "report": time.perf_counter() - attacked}
    construct_command.show(construction, found, out, spent)
    return construction


def _forge(construction: Construction, out: Path) -> Path:
    """The same files with one coefficient moved by 1 %, hashes made to fit."""
    from safetensors.torch import save_file

    construction.save(out)
    tensors = read_tensors(out / WEIGHTS_FILE)
    first = tensors[min(tensors)]
    first[0, 0] *= 1.01
    save_file(tensors, out / WEIGHTS_FILE)
    path = out / CERTIFICATE_FILE
    data = json.loads(path.read_text(encoding="utf-8"))
    data["weights_sha256"] = sha256(out / WEIGHTS_FILE)
    path.write_text(json.dumps(data), encoding="utf-8")
    return out


def pairwise_blur(queries: Tensor, x: Tensor) -> Tensor:
    """BLUR written in torch: exp(−4‖x−y‖²) is exp(8x·y − 4‖y‖²) but for a factor of x, which the ratio cancels."""
    weight = torch.addmm(-4 * (x * x).sum(-1), 8 * queries, x.T).exp_()
    return weight @ x / weight.sum(-1, keepdim=True)


@torch.no_grad()
def _race(construction: Construction, n: int, queries: int = 1000, chunk: int = 500) -> dict[str, Any]:
    """The network on n tokens against the exact sum at its fastest in torch, timed on some of the queries."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, n, construction.target.d, generator=generator, dtype=torch.float64)
    construction(x[:, :1000])
    network, y = min((_seconds(lambda: construction(x)) for _ in range(3)), key=lambda timed: timed[0])
    pairwise_blur(x[0, :chunk], x[0])
    share, exact = _seconds(lambda: torch.cat([pairwise_blur(q, x[0]) for q in torch.split(x[0, :queries], chunk)]))
    pairwise = share * n / queries
    return {
        "n": n,
        "queries": queries,
        "network_seconds": network,
        "baseline": "the exact sum by matrix products in torch (float64)",
        "exact_seconds": pairwise,
        "ratio": pairwise / network,
        "difference": float((y[0, :queries] - exact).abs().max()),
    }


def _seconds(run: Callable[[], Tensor]) -> tuple[float, Tensor]:
    start = time.perf_counter()
    out = run()
    return time.perf_counter() - start, out


def module_rows() -> list[dict[str, Any]]:
    """Each architecture on one input: parameters, milliseconds, equivariance error, padding error."""
    torch.manual_seed(0)
    d, n = 64, 256
    x = torch.randn(2, n, d)
    modules = {
        "Sumformer (MLP)": snn.mlp_sumformer(d, d, d),
        "SumMixer": snn.SumMixer(d),
        "softmax attention": snn.SoftmaxAttention(d, nhead=4),
        "Linformer": snn.LinformerAttention(d, n_max=n, k=32, nhead=4),
        "Performer (FAVOR+)": snn.FavorAttention(d, k=64, nhead=4),
        "average attention": snn.AverageAttention(d),
        "bilinear projection": snn.BilinearProjection(d, n_max=n),
        "separable convolution": snn.SeparableConvolution(d),
    }
    rows = []
    for name, module in modules.items():
        module.eval()
        with torch.no_grad():
            module(x)
            start = time.perf_counter()
            for _ in range(5):
                module(x)
            milliseconds = (time.perf_counter() - start) / 5 * 1e3
        rows.append(
            {
                "module": name,
                "parameters": sum(p.numel() for p in module.parameters()),
                "milliseconds": milliseconds,
                "equivariant": module.equivariant,
                "equivariance_error": equivariance_error(module, x),
                "padding_error": padding_error(module, x[:, : n // 2], paddings=(n // 4,)).worst,
            }
        )
    return rows


def module_table(rows: list[dict[str, Any]]) -> Table:
    """The rows as a table."""
    table = Table("module, n = 256, d = 64", "parameters", "ms", "equivariance error", "padding error")
    for row in rows:
        note = "" if row["equivariant"] else " (by definition)"
        table.add_row(
            row["module"],
            f"{row['parameters']:,}",
            f"{row['milliseconds']:.2f}",
            f"{row['equivariance_error']:.1e}{note}",
            f"{row['padding_error']:.1e}",
        )
    return table
