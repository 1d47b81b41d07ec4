package helper

import java.net.URI
import java.net.URL
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse

const val API = "https://api.github.com"

fun get(url: String): String {
    val client = HttpClient.newHttpClient()
    val request = HttpRequest.newBuilder(URI.create(url)).build()
    return client.send(request, HttpResponse.BodyHandlers.ofString()).body()
}

fun zen() = get("$API/zen")

val zenTool = tool("zen") {
    policy { network { allow("api.github.com:443") } }
    executor { zen() }
}

val statusTool = tool("status") {
    executor { URL("https://www.githubstatus.com/api").readText() }
}
