package calm

class File(private val name: String) {
    fun readText() = "pretend $name"
}

class ProcessBuilder(vararg words: String)

val calm = tool("calm") {
    executor {
        val text = """Runtime.getRuntime().exec("reboot")"""
        ProcessBuilder("rm")
        File("/etc/shadow").readText() + text
    }
}
