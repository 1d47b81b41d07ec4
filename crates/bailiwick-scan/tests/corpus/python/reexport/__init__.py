from .net import download
