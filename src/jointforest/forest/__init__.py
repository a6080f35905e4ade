"""Forests of boxes, the first kind of part: what they are, what is checked of them, what they answer."""
