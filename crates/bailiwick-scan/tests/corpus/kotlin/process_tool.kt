package search

val grep = processTool("grep", policy = toolPolicy {
    filesystem { read("/data/**"); write("/out/**") }
    exec { allow("rg") }
}) { args ->
    listOf("rg", args["pattern"].toString(), "/data")
}

val either = processTool("either") { args ->
    if (args.isEmpty()) return@processTool listOf("true")
    listOf("rg", "x")
}
