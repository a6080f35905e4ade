"""Joints as what other tools read: Arrow tables, the parameters of R's arf."""
