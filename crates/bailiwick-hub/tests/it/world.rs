//! A fleet for tests: keys, hubs in this process or as programs of their own, and members that speak TLS to them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_fleet::Hash;
use bailiwick_fleet::entry::Role;
use bailiwick_fleet::protocol::{EnrolAnswer, EnrolRequest, EnrolToken};
use bailiwick_hub::database::Database;
use bailiwick_hub::hub::{Hub, Rhythm};
use bailiwick_hub::keys::{FleetSettings, Keys};
use bailiwick_hub::listen::{Listening, TlsFront, hub_limits};
use bailiwick_hub::members::TokenWish;
use bailiwick_hub::publish::Publisher;
use bailiwick_hub::{id, schema, sequence, service};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

pub(crate) const NAME: &str = "fleet.example";
/// Everything a test waits for ends within this.
const PATIENCE: Duration = Duration::from_secs(30);

/// The keys of a fleet, in a directory.
pub(crate) struct Fleet {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) keys: Arc<Keys>,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = FleetSettings {
            name: NAME.to_owned(),
            hub: "https://localhost".to_owned(),
            log: "https://localhost".to_owned(),
            witnesses: Vec::new(),
            quorum: 0,
        };
        let keys = Keys::create(&directory.path().join("keys"), settings, "localhost").unwrap();
        Self { directory, keys: Arc::new(keys) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A hub of this process with the database at `url`.
    pub(crate) async fn hub(&self, url: &str, log_files: &str) -> RunningHub {
        let database = Database::new(url, 8, None).unwrap();
        schema::migrate(&database).await.unwrap();
        sequence::found_log(&database).await.unwrap();
        self.hub_as_it_is(database, log_files).await
    }

    /// The same, with a database that is ready or down.
    pub(crate) async fn hub_as_it_is(&self, database: Database, log_files: &str) -> RunningHub {
        let hub = Arc::new(Hub::new(database, Arc::clone(&self.keys), self.path(log_files)));
        let publisher =
            Publisher::open(&hub.log_files, Arc::clone(&self.keys), Arc::clone(&hub.checkpoint)).unwrap();
        let listening = Listening::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address;
        let (chain, key) = self.keys.server_files();
        let authority = self.keys.authority.pem().to_owned();
        let (chain, key) = (std::fs::read(chain).unwrap(), std::fs::read(key).unwrap());
        let front = TlsFront::new(&chain, &key, &[authority.as_bytes()], &[]).unwrap();
        let halt = CancellationToken::new();
        let rhythm = Rhythm {
            sign: Duration::from_millis(100),
            anchor: Duration::from_millis(300),
            sweep: Duration::from_secs(1),
        };
        let own = Arc::clone(&hub);
        let tasks = tokio::spawn(async move {
            tokio::join!(own.keep_publishing(publisher, rhythm), own.keep_tidy(rhythm), own.keep_looking())
        });
        let serving = tokio::spawn(listening.serve(front, hub_limits(), Arc::clone(&hub), halt.clone()));
        RunningHub { hub, address, halt, tasks: vec![tasks.abort_handle(), serving.abort_handle()] }
    }

    /// A caller without a certificate.
    pub(crate) fn stranger(&self, address: SocketAddr) -> Caller {
        Caller::new(self.keys.authority.pem(), None, address)
    }

    /// A new member, enrolled over TLS with a token that the hub makes.
    pub(crate) async fn member(&self, hub: &RunningHub, role: Role) -> Identity {
        let wish = TokenWish { role, labels: ["test".to_owned()].into(), ttl_s: 600 };
        let token = service::token_text(&hub.hub, "operator", &wish).await.unwrap();
        self.enrol(hub.address, &token, "a-member").await.unwrap()
    }

    /// Enrols with a token; the refusal's status and text if it is refused.
    pub(crate) async fn enrol(
        &self,
        address: SocketAddr,
        token: &str,
        name: &str,
    ) -> Result<Identity, (u16, Value)> {
        let key = KeyPair::generate().unwrap();
        self.enrol_with(address, token, name, &key).await
    }

    pub(crate) async fn enrol_with(
        &self,
        address: SocketAddr,
        token: &str,
        name: &str,
        key: &KeyPair,
    ) -> Result<Identity, (u16, Value)> {
        let token = EnrolToken::parse(token).unwrap();
        let csr = CertificateParams::default().serialize_request(key).unwrap().pem().unwrap();
        let journal_key = Some(Hash::sha256(name.as_bytes()));
        let asked = EnrolRequest { secret: token.secret, csr, name: name.to_owned(), journal_key };
        let (status, body) = self.stranger(address).post("/v1/enrol", &asked).await.unwrap();
        if status != 200 {
            return Err((status, body));
        }
        let answer: EnrolAnswer = serde_json::from_value(body).unwrap();
        Ok(Identity {
            member: answer.member,
            certificate: answer.certificate,
            key: key.serialize_pem(),
            authority: self.keys.authority.pem().to_owned(),
        })
    }
}

/// A hub in this process.
pub(crate) struct RunningHub {
    pub(crate) hub: Arc<Hub>,
    pub(crate) address: SocketAddr,
    halt: CancellationToken,
    tasks: Vec<tokio::task::AbortHandle>,
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.halt.cancel();
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// A member's certificate and key.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) member: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

impl Identity {
    pub(crate) fn at(&self, address: SocketAddr) -> Caller {
        Caller::new(&self.authority, Some((&self.certificate, &self.key)), address)
    }
}

/// Makes requests, each on a connection of its own.
#[derive(Clone)]
pub(crate) struct Caller {
    connector: TlsConnector,
    pub(crate) address: SocketAddr,
}

impl Caller {
    pub(crate) fn new(authority: &str, identity: Option<(&str, &str)>, address: SocketAddr) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(Result::unwrap).collect();
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                    .unwrap()
            }
        };
        Self { connector: TlsConnector::from(Arc::new(config)), address }
    }

    pub(crate) fn through(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<(u16, Value), String> {
        let (status, bytes) = self.send("GET", path, &[], Vec::new()).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<(u16, Value), String> {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<(u16, Value), String> {
        let (status, bytes) = self.send("POST", path, headers, serde_json::to_vec(body).unwrap()).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// Appends an entry under a key.
    pub(crate) async fn append(
        &self,
        key: &str,
        body: &bailiwick_fleet::entry::EntryBody,
    ) -> Result<(u16, Value), String> {
        self.post_with("/v1/entries", &[("idempotency-key", key)], body).await
    }

    /// A connection on which nothing was sent yet.
    pub(crate) async fn open(&self) -> Result<TlsStream<TcpStream>, String> {
        let stream = TcpStream::connect(self.address).await.map_err(|fault| fault.to_string())?;
        let name = ServerName::try_from("localhost").unwrap();
        self.connector.connect(name, stream).await.map_err(|fault| fault.to_string())
    }

    /// The status and the bytes of the answer; an error if the connection ends before.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<(u16, Vec<u8>), String> {
        let work = async {
            let stream = self.open().await?;
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|fault| fault.to_string())?;
            let driver = tokio::spawn(connection);
            let mut request = http::Request::builder().method(method).uri(path);
            if !headers.iter().any(|(name, _)| *name == "host") {
                request = request.header("host", "localhost");
            }
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Full::new(Bytes::from(body))).unwrap();
            let answer = sender.send_request(request).await.map_err(|fault| fault.to_string())?;
            let status = answer.status().as_u16();
            let bytes =
                answer.into_body().collect().await.map_err(|fault| fault.to_string())?.to_bytes().to_vec();
            driver.abort();
            Ok((status, bytes))
        };
        tokio::time::timeout(PATIENCE, work).await.map_err(|_| "no answer".to_owned())?
    }
}

/// A new id.
pub(crate) fn new_id() -> String {
    id::draw().unwrap()
}

/// Waits until something is so.
pub(crate) async fn until<T>(what: &str, mut is_so: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(value) = is_so().await {
            return value;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 30 seconds: {what}");
}

/// A runtime for one test.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// The names of files below a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
