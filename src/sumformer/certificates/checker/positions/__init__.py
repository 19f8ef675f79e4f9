"""The checker of `Positioned` networks: the wrapped network, for tokens with their place as last coordinate."""
