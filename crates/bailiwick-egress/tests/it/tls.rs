//! TLS: who is named is who is reached.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_egress::{Copying, Limits};
use hickory_proto::rr::RecordType;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use crate::servers;
use crate::world::{World, in_world, query, test_name};

const PUBLIC: &str = "93.184.216.34";
const PUBLIC_V6: &str = "2606:2800:21f:cb07::34";

/// Takes any certificate: the tests are about the way to the server, not about the server.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

pub(crate) fn client(name: &str, sni: bool) -> ClientConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    config.enable_sni = sni;
    ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap()
}

/// What a TLS client that names `name` hears over the stream.
pub(crate) fn hears(stream: TcpStream, name: &str, sni: bool) -> Result<String, std::io::Error> {
    let mut tls = rustls::StreamOwned::new(client(name, sni), stream);
    tls.write_all(b"x")?;
    let mut word = [0; 5];
    tls.read_exact(&mut word)?;
    Ok(String::from_utf8_lossy(&word).into_owned())
}

#[test]
fn an_allowed_name_is_reached_in_both_families_and_by_both_ways_of_copying() {
    if !in_world(test_name!()) {
        return;
    }
    for copying in [Copying::Splice, Copying::Buffer] {
        let world = World::with(
            &["net:connect:a.test:443", "net:connect:six.test:443"],
            &[("a.test", PUBLIC), ("six.test", PUBLIC_V6)],
            Limits::default(),
            |options| options.copying = copying,
        );
        if copying == Copying::Splice {
            servers::tls(&format!("{PUBLIC}:443"), "a.test");
            servers::tls(&format!("[{PUBLIC_V6}]:443"), "six.test");
        }
        assert_eq!(hears(world.connect("a.test", 443), "a.test", true).unwrap(), "hello");
        assert_eq!(hears(world.connect("six.test", 443), "six.test", true).unwrap(), "hello");
        let (_, v6) = world.inside(|| query("127.0.0.53:53", "a.test.", RecordType::AAAA));
        let stream = world.connect_to(SocketAddr::new(v6[0], 443)).unwrap();
        assert_eq!(hears(stream, "a.test", true).unwrap(), "hello", "over v6 inside, v4 outside");
        assert!(world.told.lines().contains(&"allowed a.test:443".to_owned()));
    }
}

#[test]
fn fronting_by_tls_name_is_refused_before_anything_is_dialled() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(
        &["net:connect:a.test:443", "net:connect:b.test:443"],
        &[("a.test", PUBLIC), ("b.test", PUBLIC)],
    );
    let seen = servers::tls(&format!("{PUBLIC}:443"), "a.test");
    for name in ["evil.test", "b.test", "x.a.test"] {
        let fault = hears(world.connect("a.test", 443), name, true).unwrap_err();
        assert!(fault.to_string().contains("AccessDenied"), "the client is told: {fault}");
    }
    world.told.wait_for("net-tls-name-other");
    assert!(hears(world.connect("a.test", 443), "a.test", false).is_err(), "no name");
    world.told.wait_for("net-tls-name-missing");
    assert_eq!(seen.count(), 0, "no host was dialled");
    assert_eq!(hears(world.connect("a.test", 443), "A.Test", true).unwrap(), "hello");
}

/// A client hello with the extension for hiding names: what rustls sends as noise.
pub(crate) fn hiding_hello(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    client(name, true).write_tls(&mut bytes).unwrap();
    let mut at = 5 + 4 + 2 + 32;
    at += 1 + usize::from(bytes[at]);
    at += 2 + usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    at += 1 + usize::from(bytes[at]);
    let noise = [0xfe, 0x0d, 0, 14, 0, 0, 1, 0, 1, 7, 0, 2, 8, 8, 0, 2, 9, 9];
    for place in [3, 7, at] {
        let length = u16::from_be_bytes([bytes[place], bytes[place + 1]]) + 18;
        bytes[place..place + 2].copy_from_slice(&length.to_be_bytes());
    }
    bytes.splice(at + 2..at + 2, noise);
    bytes
}

#[test]
fn a_hidden_name_needs_its_own_grant() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(
        &["net:connect:a.test:443", "net:connect:open.test:443?ech=allow"],
        &[("a.test", PUBLIC), ("open.test", PUBLIC)],
    );
    let seen = servers::tls(&format!("{PUBLIC}:443"), "a.test");
    let refused = world.exchange("a.test", 443, &hiding_hello("a.test"));
    assert_eq!(refused, [21, 3, 3, 0, 2, 2, 49]);
    world.told.wait_for("net-tls-name-hidden");
    assert_eq!(seen.count(), 0);
    let answer = {
        let mut stream = world.connect("open.test", 443);
        stream.write_all(&hiding_hello("open.test")).unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        first[0]
    };
    assert_eq!((answer, seen.count()), (22, 1), "the server answers the handshake");
}

#[test]
fn a_hello_in_single_bytes_is_judged_as_one() {
    if !in_world(test_name!()) {
        return;
    }
    let world = World::new(&["net:connect:a.test:443"], &[("a.test", PUBLIC)]);
    let seen = servers::tls(&format!("{PUBLIC}:443"), "a.test");
    for (name, passes) in [("a.test", true), ("evil.test", false)] {
        let mut hello = Vec::new();
        client(name, true).write_tls(&mut hello).unwrap();
        let mut stream = world.connect("a.test", 443);
        stream.set_nodelay(true).unwrap();
        for byte in &hello {
            stream.write_all(&[*byte]).unwrap();
            std::thread::sleep(Duration::from_micros(300));
        }
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(first[0], if passes { 22 } else { 21 }, "{name}");
    }
    assert_eq!(seen.count(), 1);
}
