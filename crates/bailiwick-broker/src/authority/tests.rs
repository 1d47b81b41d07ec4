//! The authority of a session, used for a name that is not one of its hosts: real clients refuse it.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use rustls::{ServerConnection, StreamOwned};

use super::*;

/// A server under a name, with a leaf of this authority.
fn serve(authority: &SessionAuthority, name: &str) -> u16 {
    let config = authority.config_for(name).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            drop(tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"));
            tls.conn.send_close_notify();
            drop(tls.flush());
        }
    });
    port
}

/// Whether each client that is there takes the server for `name`.
fn verdicts(list: &Path, name: &str, port: u16) -> Vec<(&'static str, bool)> {
    let list = list.display().to_string();
    let python = format!(
        "import socket, ssl; c = ssl.create_default_context(cafile='{list}'); \
         c.wrap_socket(socket.create_connection(('127.0.0.1', {port})), server_hostname='{name}')"
    );
    let node = format!(
        "const s = require('tls').connect({{host: '127.0.0.1', port: {port}, servername: '{name}', \
         ca: require('fs').readFileSync('{list}')}}, () => process.exit(0)); s.on('error', () => process.exit(1))"
    );
    let (at, resolved) = (format!("127.0.0.1:{port}"), format!("{name}:{port}:127.0.0.1"));
    let (url, openssl) = (format!("https://{name}:{port}/"), "openssl");
    let is_address = name.parse::<Ipv4Addr>().is_ok();
    let verify = if is_address { "-verify_ip" } else { "-verify_hostname" };
    let clients: [(&str, Vec<&str>); 4] = [
        ("curl", vec!["-sS", "--http1.1", "--noproxy", "*", "--cacert", &list, "--resolve", &resolved, &url]),
        ("python3", vec!["-c", &python]),
        ("node", vec!["-e", &node]),
        (
            openssl,
            vec![
                "s_client",
                "-connect",
                &at,
                "-servername",
                name,
                verify,
                name,
                "-verify_return_error",
                "-CAfile",
                &list,
            ],
        ),
    ];
    let ran = clients.into_iter().filter_map(|(program, words)| {
        let output = Command::new(program).args(words).stdin(std::process::Stdio::null()).output().ok()?;
        Some((program, output.status.success()))
    });
    ran.collect()
}

#[test]
fn an_authority_speaks_for_its_hosts_alone() {
    let authority = SessionAuthority::new(&["api.test".into()].into()).unwrap();
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), authority.pem()).unwrap();
    let its_own = verdicts(list.path(), "api.test", serve(&authority, "api.test"));
    assert!(its_own.len() >= 2 && its_own.iter().all(|(_, taken)| *taken), "{its_own:?}");
    for name in ["other.test", "api.test.evil.test", "notapi.test", "127.0.0.1"] {
        let others = verdicts(list.path(), name, serve(&authority, name));
        assert!(
            others.len() == its_own.len() && others.iter().all(|(_, taken)| !taken),
            "{name}: {others:?}"
        );
    }
}

#[test]
fn a_leaf_lasts_no_longer_than_a_day() {
    let (start, end) = period(LEAF);
    assert!(end - start <= time::Duration::hours(24) && USED < LEAF);
}
