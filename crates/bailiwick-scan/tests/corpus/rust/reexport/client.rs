//! A case of the corpus: client.
pub fn download(host: &str) -> std::io::Result<std::net::TcpStream> {
    std::net::TcpStream::connect((host, 8080))
}
