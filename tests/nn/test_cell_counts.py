"""The cells that occur, beside Σ as it is."""

import torch

from sumformer.nn.cell_counts import CellCounts


def test_every_cell_that_occurs_stands_once_in_its_row_with_its_count():
    total = torch.tensor([[0.0, 2.0, 0.0, 5.0, 1.0], [0.0, 0.0, 0.0, 0.0, 3.0], [0.0] * 5])
    found = CellCounts.of(total)
    back = torch.zeros_like(total).scatter_add(1, found.cells, found.counts)
    assert torch.equal(back, total)
    assert found.cells.shape == (3, 3)
    assert found.counts.tolist() == [[2, 5, 1], [3, 0, 0], [0, 0, 0]]
    asked = torch.tensor([[3, 1, 4, 3], [4, 4, 4, 4]])
    assert torch.equal(found.cells[:2].gather(1, CellCounts.of(total[:2]).find(asked)), asked)


def test_an_empty_batch_has_no_cells():
    assert CellCounts.of(torch.zeros(0, 4)).cells.shape == (0, 1)


def test_a_transform_sees_all_cells():
    total = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    all_cells = torch.func.vmap(lambda row: CellCounts.of(row[None]).counts[0])(total)
    assert torch.equal(all_cells, total)
