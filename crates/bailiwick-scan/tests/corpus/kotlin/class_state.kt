package state

import java.nio.file.Files
import java.nio.file.Path

class Store(private val file: Path) {
    private val log = java.io.File("/srv/store/log.txt")

    fun load(): String = Files.readString(file)

    fun record(text: String) {
        log.appendText(text)
    }
}

val store = Store(Path.of("/srv/store/data.json"))

val loadTool = tool("load") { executor { store.load() } }
val recordTool = tool("record") { executor { args -> store.record(args["text"].toString()) } }
