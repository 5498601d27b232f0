"""The language by which experiments are found: ``val_loss < 0.3 and lr > 1e-3 and label:baseline``. Pure."""

from det_native.schema.query.matching import Facts, matches
from det_native.schema.query.ordering import Order, parse_order
from det_native.schema.query.parser import parse
from det_native.schema.query.tree import And, Comparison, Name, Node, Not, Or, text_of

__all__ = [
    "And",
    "Comparison",
    "Facts",
    "Name",
    "Node",
    "Not",
    "Or",
    "Order",
    "matches",
    "parse",
    "parse_order",
    "text_of",
]
