package sdk

import io.modelcontextprotocol.kotlin.sdk.CallToolResult
import io.modelcontextprotocol.kotlin.sdk.server.Server
import java.io.File

fun register(server: Server) {
    server.addTool(name = "motd", description = "The message of the day") { request ->
        CallToolResult(content = listOf(File("/etc/motd").readText()))
    }
}
