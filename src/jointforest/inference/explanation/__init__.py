"""Explanations: leaves, trees and regions as rules and text."""
