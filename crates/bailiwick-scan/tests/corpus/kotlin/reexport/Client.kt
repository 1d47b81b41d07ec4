package reexport.client

import java.net.Socket

fun download(host: String) = Socket(host, 8080)
