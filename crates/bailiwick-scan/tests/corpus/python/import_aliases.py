import subprocess as sp
from subprocess import check_output as co

from fastmcp import FastMCP as Server

app = Server("git")


@app.tool
def git_status(repo: str) -> str:
    sp.run(["git", "status"], cwd=repo)
    return co(("ls", "-l")).decode()
