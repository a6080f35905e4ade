"""Fidelity: how true a joint, or synthetic rows, are to a table. (The name `fidelity` is that of the function.)"""
