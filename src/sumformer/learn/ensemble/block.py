"""The training state of consecutive members of an ensemble; no two blocks share anything that is written."""

from __future__ import annotations

import torch
from torch import Tensor

from sumformer.learn.ensemble.adam import FlatAdamW
from sumformer.learn.ensemble.gradient import GradientByHand, gradient_by_autograd
from sumformer.learn.ensemble.recipe import Recipe
from sumformer.learn.ensemble.standard_data import StandardData
from sumformer.learn.ensemble.sumformers import SumformerEnsemble

VALIDATED = 2**22  # tokens × members evaluated at once


class Block:
    """Members `chosen` of the ensemble: by autograd in a CUDA graph on a GPU, by hand on a CPU."""

    def __init__(
        self,
        ensemble: SumformerEnsemble,
        chosen: slice,
        data: StandardData,
        held: tuple[Tensor, Tensor],
        recipe: Recipe,
    ) -> None:
        self.ensemble, self.data, self.held, self.recipe = ensemble, data, held, recipe
        self.members = ensemble.members[chosen]
        self.flat = ensemble.flat.detach()[chosen].requires_grad_()  # the ensemble's own memory
        self.N, n = data.X.shape[1:3]
        self.per_epoch = max(1, self.N // recipe.batch)
        self.batch = min(recipe.batch, self.N)
        self.steps = recipe.epochs * self.per_epoch
        device, dtype = self.flat.device, self.flat.dtype
        self.which = torch.tensor([member.data for member in self.members], device=device)
        widths = torch.tensor([member.d_out for member in self.members], device=device, dtype=dtype)
        self.weights = 1 / (widths * self.batch * n)  # of the squares: their mean
        rates = torch.tensor([[member.learning_rate] for member in self.members], device=device, dtype=torch.float64)
        self.adam = FlatAdamW(self.flat.detach(), rates, recipe.betas, recipe.eps, recipe.weight_decay)
        self.number = torch.zeros((), dtype=torch.long, device=device)  # steps made
        self.order = torch.zeros(self.per_epoch, len(self.members), self.batch, dtype=torch.long, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        by_hand = device.type == "cpu"
        self.by_hand = GradientByHand(ensemble, self.flat.detach(), self.batch, n) if by_hand else None

    def epoch(self, epoch: int) -> None:
        """Every member in its own order; what does not fill a batch is left out this time."""
        rows = []
        for member in self.members:
            generator = torch.Generator().manual_seed(member.seed * 1_000_003 + epoch)
            rows.append(torch.randperm(self.N, generator=generator)[: self.per_epoch * self.batch])
        self.order.copy_(torch.stack(rows).view(-1, self.per_epoch, self.batch).transpose(0, 1))
        self.order += (self.which * self.N)[:, None]
        if self.order.is_cuda and self.graph is None:
            self.graph = self._capture()
        for _ in range(self.per_epoch):
            self.step() if self.graph is None else self.graph.replay()

    def step(self) -> None:
        """One optimiser step of every member; only tensors on the device decide what it does."""
        rows = self.order.index_select(0, (self.number % self.per_epoch)[None]).flatten()
        X, Y = self.data.rows(rows, len(self.members))
        if self.by_hand is not None:
            gradient = self.by_hand(X, Y, self.weights)
        else:
            gradient = gradient_by_autograd(self.ensemble, self.flat, X, Y, self.weights)
        self.adam.step(gradient, self.number, self.recipe.factor(self.number, self.steps))
        self.number += 1

    def _capture(self) -> torch.cuda.CUDAGraph:
        """The step as a CUDA graph; warm-up steps are undone."""
        state = [t.clone() for t in self._state]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        for tensor, before in zip(self._state, state, strict=True):
            tensor.copy_(before)
        return graph

    @property
    def _state(self) -> tuple[Tensor, ...]:
        return self.flat.detach(), self.adam.first, self.adam.second, self.number

    @torch.no_grad()
    def validate(self) -> Tensor:
        """‖Ŷ − Y‖ / ‖Y‖ of every member on its validation data, (c,)."""
        X_val, Y_val = self.held
        size = max(1, VALIDATED // (len(self.members) * X_val.shape[2]))
        gap = torch.zeros(len(self.members), dtype=torch.float64, device=X_val.device)
        norm = torch.zeros_like(gap)
        for start in range(0, X_val.shape[1], size):
            X, Y = (part[self.which, start : start + size] for part in (X_val, Y_val))
            Z = self.ensemble.evaluate(self.flat, self.data.inputs(X, self.which))
            gap += (self.data.outputs(Z, self.which) - Y).double().square().sum((1, 2, 3))
            norm += Y.double().square().sum((1, 2, 3))
        return (gap / norm).sqrt().cpu()
