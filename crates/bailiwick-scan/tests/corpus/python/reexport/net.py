from .client import fetch as download

__all__ = ["download"]
