from mcp.server.fastmcp import FastMCP

mcp = FastMCP("calm")


class subprocess:
    @staticmethod
    def run(command):
        return "pretend " + command


def open(name):
    return {"door": name}


@mcp.tool()
def calm(name: str) -> str:
    """Never calls os.system("reboot")."""
    return subprocess.run("ls") + str(open(name))
