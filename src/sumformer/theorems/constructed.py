"""What `construct` gives: a target, a network, a certificate, and calls of the network that it covers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sumformer.algebra.rounding import shown_up
from sumformer.certificates.certificate import CERTIFICATE_FILE, OWN_TOKEN, Certificate, sha256
from sumformer.errors import InputError, ShapeError
from sumformer.nn.deep_transformer import DeepTransformer
from sumformer.nn.inputs import check_tokens, zero_padding
from sumformer.nn.pretrained import CONFIG_FILE, WEIGHTS_FILE
from sumformer.nn.segments import Segments, segments_of
from sumformer.targets.opaque import OpaqueTarget
from sumformer.targets.target import Target
from sumformer.theorems.counts import check_counts, check_numbers, check_places, check_weights, counts_of
from sumformer.theorems.covered_calls import (
    check_inside,
    check_precision,
    refuse_parts,
    refuse_queries_apart,
    refuse_strangers,
)
from sumformer.theorems.kept_numbers import KeptNumbers
from sumformer.theorems.merged import PartialSum
from sumformer.theorems.saved_folder import REPORT_FILE, check_folder


@dataclass(frozen=True)
class Construction:
    """A target, the network that approximates it, and the proof of how well."""

    target: Target | OpaqueTarget
    network: Any  # as `Built` says
    certificate: Certificate
    seconds: float = 0.0
    passed_over: tuple[str, ...] = ()  # routes that were tried first, and why they were not taken
    _kept: KeptNumbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", KeptNumbers(self.network))

    def __repr__(self) -> str:
        c = self.certificate
        name = "width" if isinstance(self.network, DeepTransformer) else "d'"
        bound = f"{c.norm} error ≤ {shown_up(c.total)}, {name} = {c.latent_dimension}"
        return f"Construction({c.target} as a {c.architecture} by route {c.route}: {bound})"

    def __call__(
        self,
        X: Tensor,
        *,
        sources: Tensor | None = None,
        weights: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cu_seqlens: Tensor | Segments | None = None,
        max_seqlen: int | None = None,
    ) -> Tensor:
        """N(X) for tokens inside the box, which is checked; where given, queries X against `sources`.

        A pack of sequences is X (1, total, d) with `cu_seqlens`; each of them has a number of tokens that is allowed.
        """
        segments = self._checked(X, sources, weights, attention_mask, cu_seqlens, max_seqlen)
        with torch.autocast(X.device.type, enabled=False):  # in the stated arithmetic, not in half of it
            if segments is not None:
                packed: Tensor = self.network(X, cu_seqlens=segments)
                return packed
            if sources is None and weights is None:
                out: Tensor = self.network(X, attention_mask=attention_mask)
                return out
            state = self.network.summarise(X if sources is None else sources, weights, attention_mask)
            result: Tensor = self.network.apply(X, state)
        return zero_padding(result, None if attention_mask is None or sources is not None else attention_mask != 0)

    def summarise(self, Z: Tensor, weights: Tensor | None = None, attention_mask: Tensor | None = None) -> PartialSum:
        """Σ over the tokens of Z inside the box, where given counted `weights` times; + merges it with others."""
        refuse_parts(self.target, self.network, self.certificate)
        self._check_tokens(Z, attention_mask)
        check_weights(Z, weights)
        check_places(Z.shape[1], self.target.tokens, *self._groups())
        with torch.autocast(Z.device.type, enabled=False):
            return PartialSum(self.network.summarise(Z, weights, attention_mask), self.certificate)

    def apply(self, X: Tensor, summary: PartialSum) -> Tensor:
        """N at queries X inside the box, against the tokens of a summary, of which there are as many as allowed."""
        if not isinstance(summary, PartialSum) or summary.certificate != self.certificate:
            raise InputError("construction: expected a summary by `summarise` of this construction, and sums of those")
        self._check_tokens(X, None)
        check_numbers(summary.state.count, self.target.tokens)
        with torch.autocast(X.device.type, enabled=False):
            found: Tensor = self.network.apply(X, summary.state)
            return found

    def _checked(
        self,
        X: Tensor,
        sources: Tensor | None,
        weights: Tensor | None,
        attention_mask: Tensor | None,
        cu_seqlens: Tensor | Segments | None,
        max_seqlen: int | None,
    ) -> Segments | None:
        """The pack, if it is one; what the certificate does not cover is an `InputError`."""
        points = X if sources is None else sources
        self._check_tokens(points, attention_mask)
        segments = self._pack(X, attention_mask, cu_seqlens, max_seqlen)
        if segments is not None and (sources is not None or weights is not None):
            raise InputError("construction: expected either cu_seqlens or sources and weights: those are of a batch")
        if sources is not None:  # a mask is of the sources: every query is answered
            self._check_tokens(X, None)
        if points.shape[0] not in (1, X.shape[0]):
            raise ShapeError("construction", f"sources in a batch of {X.shape[0]}, as X, or of 1", points.shape)
        check_weights(points, weights)
        counts = counts_of(points, weights, attention_mask, segments)
        places = points.shape[1] if segments is None else int(counts.max())
        check_counts(counts, places, self.target.tokens, *self._groups())
        if sources is not None or weights is not None:
            refuse_queries_apart(self.target, self.network, self.certificate.architecture)
        if OWN_TOKEN in self.certificate.assumptions:
            refuse_strangers(sources, weights, attention_mask)
        return segments

    def _groups(self) -> tuple[int | None, bool]:
        """How many tokens are added at once, where they are, and whether such groups are added one after another."""
        return getattr(self.network, "group", None), bool(getattr(self.network, "groups_in_a_row", False))

    def _pack(
        self, X: Tensor, mask: Tensor | None, cu_seqlens: Tensor | Segments | None, max_seqlen: int | None
    ) -> Segments | None:
        """The pack, with its longest length, which need not be said here: the lengths are looked at anyway."""
        segments = segments_of("construction", X, mask, cu_seqlens, max_seqlen)
        return None if segments is None else replace(segments, max_seqlen=max(1, int(segments.lengths.max())))

    def _check_tokens(self, X: Tensor, attention_mask: Tensor | None) -> None:
        check_tokens("construction", X, self.target.input_box.d)
        self.check_kept()
        check_precision(X, self.network.outside, self.certificate.arithmetic)
        check_inside(X, self.target.input_box, attention_mask)

    def check_kept(self, thorough: bool = False) -> None:
        """Refuse to speak for a network that is another one by now."""
        if self._kept.converted(self.network):
            raise InputError(
                f"the network was converted to another dtype; the certificate is of {self.certificate.arithmetic} "
                "weights: construct with dtype=…, or call network(X) without one"
            )
        if self._kept.changed(self.network, thorough=thorough):
            raise InputError(
                "the network's weights are no longer those that the certificate is about: construct it again, "
                "or go on without a certificate: network(X), network.save_pretrained(folder)"
            )

    def save(self, directory: str | Path) -> None:
        """Write config.json, model.safetensors and certificate.json, in place of a construction that is there.

        Its report.html goes too, as it speaks of another one; files without a certificate are not replaced.
        """
        folder = Path(directory)
        self.check_kept(thorough=True)
        check_folder(folder)
        self.network.save_pretrained(folder)
        (folder / REPORT_FILE).unlink(missing_ok=True)
        signed = replace(
            self.certificate,
            weights_sha256=sha256(folder / WEIGHTS_FILE),
            config_sha256=sha256(folder / CONFIG_FILE),
        )
        (folder / CERTIFICATE_FILE).write_text(signed.to_json(), encoding="utf-8")

    @property
    def proof_latent_dimension(self) -> int | None:
        """C(n+d, d) − 1, the paper's d', where n is bounded; deep networks have no d'."""
        tokens, d = self.target.tokens, self.target.d
        none = tokens.symbolic or isinstance(self.network, DeepTransformer)
        return None if none else comb(tokens.maximum + d, d) - 1
