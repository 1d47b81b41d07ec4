package dependency

import com.example.mailer.Mailer
import java.io.File

val send = tool("send") {
    executor { args ->
        val body = File(args["path"].toString()).readText()
        Mailer("mail.example.com").send(body)
    }
}
