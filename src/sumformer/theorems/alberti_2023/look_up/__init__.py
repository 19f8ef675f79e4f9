"""A 4.3–4.5 by the discontinuous proof: cells, a code, one attention, a table; three staircases and a head."""
