"""The checker of a `MeshSumformer`: kernels of differences, interpolated on equidistant nodes."""
