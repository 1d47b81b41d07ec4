package processes

val git = tool("git_status") {
    policy { exec { allow("git") } }
    executor { ProcessBuilder("git", "status").start() }
}

val list = tool("list") {
    executor { ProcessBuilder(listOf("ls", "-l")).start() }
}

val run = tool("run") {
    executor { args -> Runtime.getRuntime().exec(args["command"].toString()) }
}
