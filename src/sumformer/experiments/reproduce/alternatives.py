"""Alternatives to attention (ICLR paper): masked prediction with the token mixer of every layer exchanged.

The claim to check is an ordering: average attention < BProj < SepConv < self-attention, and one or two early layers of
SepConv under self-attention do not hurt. The text is the standard library's sources, the symbols are bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sumformer.experiments.reproduce.corpus import SYMBOLS, split, standard_library, windows
from sumformer.experiments.reproduce.outcome import Outcome, machine
from sumformer.nn import (
    AverageAttention,
    BilinearProjection,
    Encoder,
    FeedForward,
    LearnedPositions,
    ResidualBlock,
    SeparableConvolution,
    SinusoidalPositions,
    SoftmaxAttention,
    SumMixer,
    TokenEmbedding,
)
from sumformer.nn.token_head import TokenHead

UNSAID = (
    "the paper pre-trains BERT on books and Wikipedia; here small encoders predict masked bytes of Python sources, so "
    "only the ordering is compared",
    "a hidden byte is replaced by one more symbol every time; the paper's 80/10/10 replacement is BERT's",
    "positions are learned, started at sines and cosines: from small random ones self-attention does not leave the "
    "loss of single bytes within these steps",
)
HIDDEN = 0.15  # of the bytes
ORDER = ("average", "BProj", "SepConv", "self-attention")


@dataclass(frozen=True)
class Config:
    """Small enough for a few minutes on a GPU."""

    n: int = 128
    d_model: int = 256
    heads: int = 8
    layers: int = 6
    feed_forward: int = 1024
    steps: int = 4000
    batch: int = 128
    rate: float = 1e-3
    seeds: int = 1
    text: int = 12_000_000
    tests: int = 2048
    device: str = "cpu"

    @staticmethod
    def reduced(device: str = "cpu") -> Config:
        """Minutes on two cores."""
        return Config(64, 64, 4, 3, 256, steps=400, batch=32, rate=2e-3, text=2_000_000, tests=256, device=device)

    @staticmethod
    def tiny(device: str = "cpu") -> Config:
        """Seconds, for tests."""
        return Config(12, 16, 2, 2, 32, steps=6, batch=8, text=200_000, tests=32, device=device)


def run(config: Config, progress: Callable[[str], None] = lambda text: None) -> Outcome:
    start, rows = time.perf_counter(), []
    text = split(standard_library(config.text).to(config.device))
    for name, kinds in mixers(config).items():
        for seed in range(config.seeds):
            began = time.perf_counter()
            loss, right, parameters = _train(config, kinds, seed, text, lambda s, name=name: progress(f"{name}: {s}"))  # type: ignore[misc]
            spent = time.perf_counter() - began
            rows.append(
                {
                    "mixer": name,
                    "seed": seed,
                    "loss": loss,
                    "accuracy": right,
                    "parameters": parameters,
                    "seconds": spent,
                }
            )
    return Outcome(
        "alternatives",
        asdict(config),
        {"rows": rows},
        tuple(rows),
        _findings(rows),
        UNSAID,
        time.perf_counter() - start,
        machine(config.device),
    )


def mixers(config: Config) -> dict[str, list[str]]:
    """The mixer of every layer, first layer first; hybrids have SepConv in their first layers."""
    alone = ["average", "BProj", "SepConv", "self-attention", "Sumformer"]
    out = {name: [name] * config.layers for name in alone}
    for early in (1, 2):
        for below, above in (("SepConv", "self-attention"), ("SepConv", "Sumformer")):
            if early < config.layers:
                out[f"{early} × {below}, then {above}"] = [below] * early + [above] * (config.layers - early)
    return out


def model(config: Config, kinds: list[str]) -> Encoder:
    """Pre-norm blocks with these mixers."""
    D = config.d_model
    make: dict[str, Callable[[], nn.Module]] = {
        "average": lambda: AverageAttention(D, D),
        "BProj": lambda: BilinearProjection(D, config.n),
        "SepConv": lambda: SeparableConvolution(D, 7),
        "self-attention": lambda: SoftmaxAttention(D, config.heads),
        "Sumformer": lambda: SumMixer(D),
    }
    blocks = [
        ResidualBlock(make[kind](), FeedForward(D, config.feed_forward), nn.LayerNorm(D), nn.LayerNorm(D))
        for kind in kinds
    ]
    positions = LearnedPositions(config.n, D)
    with torch.no_grad():
        positions.table.copy_(SinusoidalPositions(D).p(torch.arange(config.n), positions.table.dtype))
    return Encoder(TokenEmbedding(SYMBOLS + 1, D), blocks, TokenHead(D, SYMBOLS), positions)


def _train(
    config: Config, kinds: list[str], seed: int, text: tuple[Tensor, Tensor], progress: Callable[[str], None]
) -> tuple[float, float, int]:
    """Loss and accuracy on held-out text, and the number of parameters."""
    torch.manual_seed(seed)
    network = model(config, kinds).to(config.device)
    optimise = _Step(config, network)
    generator = torch.Generator(config.device).manual_seed(seed)
    for step in range(config.steps):
        loss = optimise(*_draw(config, text[0], generator))
        if step % 100 == 99:
            progress(f"step {step + 1} of {config.steps}, loss {float(loss):.3f}")
    network.eval()
    generator = torch.Generator(config.device).manual_seed(10_000)
    with torch.no_grad():
        found = [
            torch.stack(_predict(config, network, *_draw(config, text[1], generator)))
            for _ in range(max(1, config.tests // config.batch))
        ]
    mean = torch.stack(found).mean(0)
    return float(mean[0]), float(mean[1]), sum(p.numel() for p in network.parameters())


class _Step:
    """One step of AdamW; on a GPU a CUDA graph after the first three."""

    def __init__(self, config: Config, network: nn.Module) -> None:
        self.config, self.network, self.made = config, network, 0
        on_gpu = config.device == "cuda"
        rate = torch.tensor(config.rate, device=config.device) if on_gpu else config.rate
        parameters = network.parameters()
        self.adam = torch.optim.AdamW(parameters, rate, betas=(0.9, 0.98), weight_decay=0.01, capturable=on_gpu)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.adam, config.rate, total_steps=config.steps, pct_start=0.1, cycle_momentum=False
        )
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: tuple[Tensor, ...] = ()
        self.loss = torch.zeros(())

    def __call__(self, *inputs: Tensor) -> Tensor:
        if self.config.device == "cuda" and self.made == 3:
            self.inputs = tuple(t.clone() for t in inputs)
            self.adam.zero_grad(set_to_none=True)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loss = self._step(*self.inputs)
        if self.graph is None:
            self.adam.zero_grad(set_to_none=True)
            self.loss = self._step(*inputs)
        else:
            for place, value in zip(self.inputs, inputs, strict=True):
                place.copy_(value)
            self.graph.replay()
        self.schedule.step()
        self.made += 1
        return self.loss

    def _step(self, *inputs: Tensor) -> Tensor:
        loss, _ = _predict(self.config, self.network, *inputs)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.adam.step()
        return loss.detach()


def _draw(config: Config, text: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Stretches of text and which of their bytes are hidden."""
    X = windows(text, config.batch, config.n, generator)
    return X, torch.rand(X.shape, generator=generator, device=X.device) < HIDDEN


def _predict(config: Config, network: nn.Module, X: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy and share of right guesses on hidden bytes."""
    with torch.autocast(config.device, torch.bfloat16, enabled=config.device == "cuda", cache_enabled=False):
        logits = network(torch.where(hidden, SYMBOLS, X))
    guesses, wanted = logits.float().flatten(0, 1), torch.where(hidden, X, -100).flatten()
    loss = functional.cross_entropy(guesses, wanted, ignore_index=-100)
    right = ((guesses.argmax(-1) == wanted) & hidden.flatten()).sum() / hidden.sum().clamp_min(1)
    return loss, right


def _findings(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    loss: dict[str, float] = {}
    for name in dict.fromkeys(r["mixer"] for r in rows):
        some = [float(r["loss"]) for r in rows if r["mixer"] == name]
        loss[name] = sum(some) / len(some)
    ranked = sorted(loss, key=lambda name: -loss[name])
    out = ["held-out loss, worst first: " + ", ".join(f"{name} {loss[name]:.3f}" for name in ranked)]
    found = [name for name in ranked if name in ORDER]
    holds = "holds" if found == list(ORDER) else f"does not hold here: {' < '.join(found)}"
    out.append(f"the paper's ordering {' < '.join(ORDER)} {holds}")
    for name, value in loss.items():
        if "then self-attention" in name:
            change = value - loss["self-attention"]
            out.append(f"{name}: loss {change:+.3f} against self-attention alone")
    return tuple(out)
