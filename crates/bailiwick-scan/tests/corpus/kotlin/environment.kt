package environment

import java.lang.System.getenv

val settings = tool("settings") {
    policy { environment { allow("API_KEY") } }
    executor { System.getenv("API_KEY") + getenv("REGION") }
}

val show = tool("show") {
    executor { args -> System.getenv(args["name"].toString()) }
}
