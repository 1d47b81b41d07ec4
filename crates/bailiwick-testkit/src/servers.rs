//! Servers of connections, each connection on a thread of its own.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Serves every connection that comes with `serve`, until the test ends.
pub fn serve(listener: TcpListener, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
}

/// The same inside TLS.
pub fn serve_tls(
    listener: TcpListener,
    config: rustls::ServerConfig,
    handle: impl Fn(&mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>) + Send + Sync + 'static,
) {
    let config = Arc::new(config);
    serve(listener, move |stream| {
        drop(stream.set_nodelay(true));
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        handle(&mut rustls::StreamOwned::new(connection, stream));
    });
}
