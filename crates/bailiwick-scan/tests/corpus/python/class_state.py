import requests
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("weather")


class Weather:
    def __init__(self, key):
        self.session = requests.Session()
        self.key = key

    def now(self, city):
        return self.session.get("https://api.weather.example/now", params={"q": city}).json()


@mcp.tool(name="weather_now")
def weather(city: str):
    return Weather("k").now(city)
