"""The network N as its configuration describes it, read and judged without the constructor's code.

body_c(x, y) is claimed to be Σ_t a_t(x)·b_t(y)·p_t(v)·Π_g K_g(x, y), with v = (y − centre)/radius. Everything the proof
takes for granted about indices is checked here: p ⊛ Σ finds its features, no entry is written twice, widths are 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product as cartesian
from math import prod

from sumformer.targets.node import Node
from sumformer.targets.tree import Const, Reduce
from sumformer.targets.walk import has_function, postorder

MultiIndex = tuple[int, ...]
Polynomial = tuple[tuple[MultiIndex, Fraction], ...]
MAX_POLYNOMIAL_DEGREE = 64
MAX_SHIFTS = 2_000_000


@dataclass(frozen=True)
class Channel:
    """Features b(y)·T_β(v), β in `support`; of b = 1 the feature T_0 is the constant 1."""

    factor: Node
    support: tuple[MultiIndex, ...]

    @property
    def is_one(self) -> bool:
        return isinstance(self.factor, Const) and self.factor.value == 1


@dataclass(frozen=True)
class Kernel:
    """K_g in the coordinates it mentions, and the degrees of K̃_g."""

    expression: Node
    coordinates: tuple[int, ...]
    x_degrees: tuple[int, ...]
    y_degrees: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return prod(n + 1 for n in self.x_degrees), prod(n + 1 for n in self.y_degrees)


@dataclass(frozen=True)
class Product:
    """Π_g K̃_g restricted to the features β in `support`."""

    kernels: tuple[int, ...]
    support: tuple[MultiIndex, ...]


@dataclass(frozen=True)
class Term:
    """a(x) · b(y) · p(v) · Π K."""

    own: Node
    channel: int
    polynomial: Polynomial
    product: int


@dataclass(frozen=True)
class Reduction:
    """One reduction of the target: for each coordinate its terms."""

    node: Reduce
    components: tuple[tuple[Term, ...], ...]


@dataclass(frozen=True)
class Network:
    """All of config.json."""

    expression: Node
    d: int
    centre: tuple[Fraction, ...]
    radius: tuple[Fraction, ...]
    arithmetic: str
    group: int
    channels: tuple[Channel, ...]
    kernels: tuple[Kernel, ...]
    products: tuple[Product, ...]
    reductions: tuple[Reduction, ...]

    @property
    def latent_dimension(self) -> int:
        return sum(len(channel.support) for channel in self.channels)


def evaluates_functions(net: Network) -> bool:
    """Whether φ or ψ computes a function of torch's; those inside kernels are interpolated."""
    terms = [term for r in net.reductions for component in r.components for term in component]
    computed = [net.expression, *(channel.factor for channel in net.channels), *(term.own for term in terms)]
    return any(has_function(node, into_reductions=False) for node in computed)


def structural_failures(net: Network) -> list[str]:
    """Every reason why the network would not compute what the proof says it computes."""
    out: list[str] = []
    if not 2 <= net.group <= 2**20:
        out.append(f"group: expected 2 to 2^20 tokens, got {net.group}")
    for i, channel in enumerate(net.channels):
        out += [f"channel {i}: {why}" for why in channel_failures(channel, net.d)]
    for g, kernel in enumerate(net.kernels):
        out += [f"kernel {g}: {why}" for why in _kernel(kernel, net.d)]
    for j, product in enumerate(net.products):
        out += [f"product {j}: {why}" for why in _product(product, net)]
    return out or use_failures(net)  # which relies on well-formed parts


def use_failures(net: Network) -> list[str]:
    """Parts that no term uses, and reductions and terms that do not fit the target or the parts."""
    return _unused(net) + _reductions(net)


def _unused(net: Network) -> list[str]:
    """Every channel, kernel and product serves some term: no weight is outside the proof."""
    terms = [term for r in net.reductions for terms in r.components for term in terms]
    products = {term.product for term in terms}
    kernels = {g for j in products if 0 <= j < len(net.products) for g in net.products[j].kernels}
    used = {"channel": {term.channel for term in terms}, "product": products, "kernel": kernels}
    counts = {"channel": len(net.channels), "product": len(net.products), "kernel": len(net.kernels)}
    return [f"{what} {i}: no term uses it" for what in counts for i in range(counts[what]) if i not in used[what]]


def channel_failures(channel: Channel, d: int) -> list[str]:
    out = []
    if channel.factor.width != 1:
        out.append(f"its factor has width {channel.factor.width}, not 1")
    if "x" in channel.factor.free or any(isinstance(part, Reduce) for part in postorder(channel.factor)):
        out.append("its factor is not a function of y alone")
    if not _distinct(channel.support, d):
        out.append(f"its support is not a set of multi-indices of length {d}")
    if channel.is_one and (0,) * d in channel.support:
        out.append("its support holds T_0, which is the constant 1")
    return out


def _kernel(kernel: Kernel, d: int) -> list[str]:
    out = []
    c = kernel.coordinates
    if not c or len(set(c)) != len(c) or not all(0 <= k < d for k in c):
        out.append("its coordinates are not distinct coordinates of a token")
    if not len(c) == len(kernel.x_degrees) == len(kernel.y_degrees):
        out.append("it has not one degree per coordinate")
    if any(n < 0 for n in (*kernel.x_degrees, *kernel.y_degrees)):
        out.append("it has a negative degree")
    if kernel.expression.width != 1:
        out.append(f"its expression has width {kernel.expression.width}, not 1")
    if any(isinstance(part, Reduce) for part in postorder(kernel.expression)):
        out.append("its expression contains a reduction")
    return out


def _product(product: Product, net: Network) -> list[str]:
    if not all(0 <= g < len(net.kernels) for g in product.kernels):
        return ["it names a kernel that does not exist"]
    if not _distinct(product.support, net.d):
        return [f"its support is not a set of multi-indices of length {net.d}"]
    limit: dict[int, int] = {}
    for kernel in (net.kernels[g] for g in product.kernels):
        for c, degree in zip(kernel.coordinates, kernel.y_degrees, strict=False):
            if c in limit:
                return [f"two of its kernels use coordinate {c}"]
            limit[c] = degree
    for beta in product.support:
        if any(b > limit.get(c, 0) for c, b in enumerate(beta)):
            return [f"the feature {beta} exceeds the degrees of its kernels"]
    if not product.kernels and product.support != ((0,) * net.d,):
        return ["without kernels its support must be the feature 0"]
    return []


def _reductions(net: Network) -> list[str]:
    out = []
    wanted = {part for part in postorder(net.expression) if isinstance(part, Reduce)}
    listed: set[Node] = set()
    for r, reduction in enumerate(net.reductions):
        node = reduction.node
        if node not in wanted or node in listed:
            out.append(f"reduction {r}: it is not one of the target's, or is listed twice")
        if node.kind not in ("sum", "mean", "sum_others", "mean_others"):
            out.append(f"reduction {r}: {node.kind}(…) is not a sum")
        if len(reduction.components) != node.width:
            out.append(f"reduction {r}: expected {node.width} coordinates, got {len(reduction.components)}")
        for terms in reduction.components:
            for term in terms:
                out += [f"reduction {r}: {why}" for why in _term(term, net, listed)]
        listed.add(node)
    missing = len(wanted - listed)
    return out + ([f"reductions: {missing} of the target's are missing"] if missing else [])


def _term(term: Term, net: Network, listed: set[Node]) -> list[str]:
    if not (0 <= term.channel < len(net.channels) and 0 <= term.product < len(net.products)):
        return ["a term names a channel or product that does not exist"]
    if term.own.width != 1 or "y" in term.own.free:
        return ["an own factor is not a number that depends on x alone"]
    if any(isinstance(part, Reduce) and part not in listed for part in postorder(term.own)):
        return ["an own factor uses a reduction that is not computed before it"]
    if not _distinct(tuple(gamma for gamma, _ in term.polynomial), net.d):
        return [f"a polynomial is not a sum over distinct multi-indices of length {net.d}"]
    if max((g for gamma, _ in term.polynomial for g in gamma), default=0) > MAX_POLYNOMIAL_DEGREE:
        return [f"a polynomial has a degree above {MAX_POLYNOMIAL_DEGREE}"]
    choices = 2 ** max((sum(g > 0 for g in gamma) for gamma, _ in term.polynomial), default=0)
    if len(net.products[term.product].support) * len(term.polynomial) * choices > MAX_SHIFTS:
        return [f"p ⊛ Σ has more than {MAX_SHIFTS} entries"]
    channel = net.channels[term.channel]
    held = set(channel.support) | ({(0,) * net.d} if channel.is_one else set())
    for beta in net.products[term.product].support:
        for index in shifted(beta, term.polynomial):
            if index not in held:
                return [f"the feature {index} is needed but channel {term.channel} does not hold it"]
    return []


def shifted(beta: MultiIndex, polynomial: Polynomial) -> dict[MultiIndex, Fraction]:
    """T_β·p in Chebyshev polynomials, by T_b T_g = (T_{b+g} + T_{|b−g|})/2 in every coordinate."""
    out: dict[MultiIndex, Fraction] = {}
    for gamma, coefficient in polynomial:
        choices = [{b + g, abs(b - g)} for b, g in zip(beta, gamma, strict=True)]  # one choice where b or g is 0
        share = coefficient / prod(len(choice) for choice in choices)
        for index in cartesian(*choices):
            out[index] = out.get(index, Fraction(0)) + share
    return {index: weight for index, weight in out.items() if weight}


def _distinct(indices: tuple[MultiIndex, ...], d: int) -> bool:
    return len(set(indices)) == len(indices) and all(len(i) == d and min(i) >= 0 for i in indices)
