package reexport.server

import reexport.client.download as fetchList

val lists = tool("list") {
    executor { fetchList("lists.example.org") }
}
