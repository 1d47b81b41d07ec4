package hosts

import java.io.File

/** Not File("/etc/shadow").readText(). */
val hosts = tool("read_hosts") {
    description("Runs ProcessBuilder(\"rm\")? No.")
    policy {
        filesystem { read("/etc/hosts") }
    }
    executor { args ->
        // File("/etc/passwd").writeText("")
        File("/etc/hosts").readText()
    }
}
