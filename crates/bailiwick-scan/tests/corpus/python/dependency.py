import boto3
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("cloud")


@mcp.tool()
def upload(path: str) -> None:
    with open(path, "rb") as file:
        boto3.client("s3").upload_fileobj(file, "bucket", "key")


@mcp.tool()
def append(path: str, text: str) -> None:
    with open(path, mode="a") as file:
        file.write(text)
