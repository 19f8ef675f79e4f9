"""The Chebyshev table of constructed networks: T_k(cos θ) = cos kθ, also under a compiler that inlines."""

from __future__ import annotations

import torch

from sumformer.kernels.chebyshev_rows import LEAST
from sumformer.nn.network_operations import chebyshev_table


def written_terms(graph: torch.fx.Graph) -> int:
    """The most operations that an inlining compiler writes for one value, as_strided being read from memory."""
    terms: dict[torch.fx.Node, int] = {}
    for node in graph.nodes:
        inlined = node.op != "placeholder" and node.target != "as_strided"
        terms[node] = 1 + sum(terms[source] for source in node.all_input_nodes) if inlined else 1
    return max(terms[node] for node in graph.nodes if node.target is not torch.stack and node.op != "output")


def test_chebyshev_polynomials_of_a_cosine():
    angle = torch.linspace(0, 3, 50, dtype=torch.float64)
    expected = torch.cos(angle[:, None] * torch.arange(41))
    torch.testing.assert_close(chebyshev_table(angle.cos(), 40), expected, rtol=0, atol=1e-12)


def test_high_degrees_stay_small_under_a_compiler():
    graphs = []

    def keep(module, _):
        graphs.append(module.graph)
        return module.forward

    t = torch.linspace(-1, 1, 7, dtype=torch.float64)
    compiled = torch.compile(chebyshev_table, fullgraph=True, dynamic=True, backend=keep)
    assert torch.equal(compiled(t, 60), chebyshev_table(t, 60))
    assert written_terms(graphs[0]) < 10_000


def test_one_graph_for_few_and_for_many_tokens():
    graphs = []

    def count(module, _):
        graphs.append(module.graph)
        return module.forward

    compiled = torch.compile(chebyshev_table, fullgraph=True, dynamic=True, backend=count)
    for n in (100, LEAST - 1, LEAST, 10 * LEAST):
        t = torch.linspace(-1, 1, 3 * n, dtype=torch.float64).reshape(3, n)
        assert torch.equal(compiled(t, 4), chebyshev_table(t, 4))
    assert len(graphs) == 1
