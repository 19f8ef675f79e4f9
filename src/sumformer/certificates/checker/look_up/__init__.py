"""The checker of `LookUpTransformer`: its staircases are read off the weights, and run on every choice of cells."""
