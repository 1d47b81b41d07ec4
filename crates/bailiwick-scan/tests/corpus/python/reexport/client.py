from urllib.request import urlopen


def fetch(url):
    return urlopen(url).read()
