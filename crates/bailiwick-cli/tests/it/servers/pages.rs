//! Pages of a host on this machine, for servers that fetch.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

/// Starts the host. Each of its pages says which one it is; what robots may do it does not say.
pub(super) fn host() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    bailiwick_testkit::servers::serve(listener, |mut stream| {
        let mut room = [0; 4096];
        let read = stream.read(&mut room).unwrap_or(0);
        let head = String::from_utf8_lossy(&room[..read]).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let (status, page) = match path {
            "/robots.txt" => ("404 Not Found", String::new()),
            _ => ("200 OK", format!("<html><body><p>the page {path}</p></body></html>")),
        };
        let length = page.len();
        // A client that has gone needs no answer.
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
        );
    });
    address
}
