//! A TCP proxy that cuts connections: after so many bytes in one direction, both directions end.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::random::Random;

/// A proxy; it ends with this value.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Before `target`; so many connections of a hundred are cut somewhere within `within` bytes.
    pub(crate) async fn before(target: SocketAddr, chance: u64, within: u64, random: Random) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let random = Arc::new(Mutex::new(random));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (up, down) = {
                    let mut random = random.lock().unwrap();
                    let cut = random.percent(chance).then(|| random.below(within));
                    if random.percent(50) { (cut, None) } else { (None, cut) }
                };
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(target).await else { return };
                    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
                    let ((mut client_in, mut client_out), (mut server_in, mut server_out)) =
                        (client.into_split(), server.into_split());
                    tokio::select! {
                        () = copy(&mut client_in, &mut server_out, up) => {}
                        () = copy(&mut server_in, &mut client_out, down) => {}
                    }
                });
            }
        });
        Self { address, task }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn copy(
    from: &mut tokio::net::tcp::OwnedReadHalf,
    to: &mut tokio::net::tcp::OwnedWriteHalf,
    mut left: Option<u64>,
) {
    let mut buffer = vec![0; 8192];
    while let Ok(read) = from.read(&mut buffer).await {
        let take = left.map_or(read, |left| read.min(left as usize));
        if read == 0 || to.write_all(&buffer[..take]).await.is_err() {
            return;
        }
        if let Some(left) = &mut left {
            *left -= take as u64;
            if *left == 0 {
                return;
            }
        }
    }
}
