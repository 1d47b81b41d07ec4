import shutil
import sqlite3

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("db")


@mcp.tool()
def query(sql: str) -> list:
    connection = sqlite3.connect("/var/lib/app/data.db")
    return connection.execute(sql).fetchall()


@mcp.tool()
def backup() -> None:
    shutil.copyfile("/var/lib/app/data.db", "/var/backups/data.db")
    shutil.rmtree("/var/backups/old")
