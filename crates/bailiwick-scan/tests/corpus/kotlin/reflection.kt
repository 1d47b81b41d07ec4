package reflection

val load = tool("load") {
    executor { args -> Class.forName(args["name"].toString()) }
}

val native = tool("native") {
    executor { args -> System.loadLibrary("native") }
}
