"""The checker of `CompiledTransformer`: sup |f − N| ≤ |f − S| + |S − program| + |program − N|, from the saved files."""
