import { S3Client } from "@aws-sdk/client-s3";
import { createReadStream } from "fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "cloud", version: "1.0.0" });

server.tool("upload", async ({ path }) => new S3Client({}).send(createReadStream(path)));
