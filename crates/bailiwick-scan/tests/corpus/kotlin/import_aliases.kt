package aliases

import java.io.File as Disk
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths

val copy = tool("copy") {
    executor { args ->
        Disk("/srv/out/a.txt").writeText("x")
        Files.readString(Path.of("/srv", "in", "a.txt"))
        Files.delete(Paths.get("/srv/in/b.txt"))
    }
}
