package streams

import java.io.FileInputStream
import java.io.FileOutputStream
import java.io.FileReader
import java.nio.file.Files
import kotlin.io.path.Path
import kotlin.io.path.writeText

val pump = tool("pump") {
    executor { args ->
        FileInputStream("/srv/in/raw").use { input ->
            FileOutputStream("/srv/out/raw").use { output -> input.copyTo(output) }
        }
        FileReader(args["path"].toString()).readLines()
    }
}

val stamp = tool("stamp") {
    executor { Path("/srv/stamp").writeText("now") }
}

val tidy = tool("tidy") {
    executor { Files.createDirectories(java.nio.file.Path.of("/srv/tidy")) }
}
