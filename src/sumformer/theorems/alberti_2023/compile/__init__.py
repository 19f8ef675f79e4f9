"""A Sumformer compiled into blocks of ReLU layers around one attention: the machinery of A 4.3, 4.4 and 4.5."""
