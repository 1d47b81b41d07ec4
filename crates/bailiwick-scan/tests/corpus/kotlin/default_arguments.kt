package defaults

import java.io.File

fun log(text: String, file: String = "/var/log/agent.log") {
    File(file).appendText(text)
}

val logTool = tool("log") {
    policy { filesystem { write("/var/log/**") } }
    executor { args -> log(args["text"].toString()) }
}

val logTo = tool("log_to") {
    executor { args -> log(args["text"].toString(), file = args["file"].toString()) }
}
