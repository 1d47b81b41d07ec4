//! The pool.

use std::ops::{Deref, DerefMut};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config};

use super::StoreError;
use super::tls::DatabaseTls;

/// How long one statement may take, and how long a request waits for a connection.
const STATEMENT: Duration = Duration::from_secs(5);

/// Set on every connection; both kinds of cluster know these.
const SESSION: &str =
    "SET statement_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; SET timezone = 'UTC'";

/// Why there is no pool.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseFault {
    /// It is not an address of a database.
    #[error(
        "`--database` is not a PostgreSQL address: {0}; write postgres://USER@HOST:5432/NAME?sslmode=require"
    )]
    Address(tokio_postgres::Error),
    /// It would be reached in clear text.
    #[error("the database on `{0}` would be reached without TLS; add `sslmode=require` to the address")]
    ClearText(String),
    /// The certificates of authorities cannot be read.
    #[error("cannot read the authorities for the database's certificate: {0}")]
    Authorities(String),
}

/// A pool of connections to one database.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    tls: DatabaseTls,
    idle: Mutex<Vec<Client>>,
    free: Arc<Semaphore>,
    appending: tokio::sync::Mutex<()>,
}

impl Database {
    /// A pool of at most `size` connections; none is made yet. `authorities` are further ones, as PEM.
    ///
    /// # Errors
    /// If the address is none, or means clear text to another host.
    pub fn new(address: &str, size: usize, authorities: Option<&[u8]>) -> Result<Self, DatabaseFault> {
        let mut config = Config::from_str(address).map_err(DatabaseFault::Address)?;
        let far = config.get_hosts().iter().find_map(|host| match host {
            Host::Tcp(name) if !is_loopback(name) => Some(name.clone()),
            Host::Tcp(_) | Host::Unix(_) => None,
        });
        if let Some(host) = far
            && config.get_ssl_mode() != SslMode::Require
        {
            return Err(DatabaseFault::ClearText(host));
        }
        if config.get_ssl_mode() != SslMode::Require {
            config.ssl_mode(SslMode::Disable); // the kernel keeps this host's connections from others
        }
        config.application_name("bailiwick-hub").connect_timeout(STATEMENT);
        let tls = DatabaseTls::new(authorities).map_err(DatabaseFault::Authorities)?;
        let free = Arc::new(Semaphore::new(size));
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                tls,
                idle: Mutex::default(),
                free,
                appending: tokio::sync::Mutex::default(),
            }),
        })
    }

    /// A connection, of the pool or new.
    ///
    /// # Errors
    /// If the database does not answer, or all connections are in use for too long.
    pub async fn client(&self) -> Result<PooledClient, StoreError> {
        let free = Arc::clone(&self.inner.free);
        let permit = timeout(STATEMENT, free.acquire_owned())
            .await
            .map_err(|_| StoreError::Down("all connections are in use".to_owned()))?
            .map_err(|closed| StoreError::Down(closed.to_string()))?;
        let idle = loop {
            let idle = self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(client) if client.is_closed() => {}
                idle => break idle,
            }
        };
        let client = match idle {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(PooledClient { client: Some(client), pool: Arc::clone(&self.inner), _permit: permit })
    }

    async fn connect(&self) -> Result<Client, StoreError> {
        let connecting = async {
            let (client, connection) = self.inner.config.connect(self.inner.tls.clone()).await?;
            tokio::spawn(connection); // its error is that of the statements on it
            client.batch_execute(SESSION).await?;
            Ok::<_, tokio_postgres::Error>(client)
        };
        let late = |_| StoreError::Down("no connection in time".to_owned());
        Ok(timeout(STATEMENT, connecting).await.map_err(late)??)
    }

    /// The turn to append to the log. Requests of one hub wait here in the order they came, so that only other hubs can be quicker.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it does not come within `patience`.
    pub async fn turn(&self, patience: Duration) -> Result<MutexGuard<'_, ()>, StoreError> {
        timeout(patience, self.inner.appending.lock()).await.map_err(|_| StoreError::Conflict)
    }

    /// Does `work` on a connection, within the time of a request.
    ///
    /// # Errors
    /// That of `work`, or [`StoreError::Down`].
    pub async fn with<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut client = self.client().await?;
        let done = timeout(STATEMENT * 2, work(&mut client)).await;
        let result = done.map_err(|_| StoreError::Down("no answer in time".to_owned()))?;
        if !matches!(result, Err(StoreError::Down(_))) {
            client.keep();
        }
        result
    }
}

/// A connection in use. Dropped without [`PooledClient::keep`], it is closed.
pub struct PooledClient {
    client: Option<Client>,
    pool: Arc<Inner>,
    _permit: OwnedSemaphorePermit,
}

impl PooledClient {
    /// Puts the connection back.
    pub fn keep(mut self) {
        let Some(client) = self.client.take() else { return };
        if !client.is_closed() {
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}

impl Deref for PooledClient {
    type Target = Client;

    #[expect(clippy::expect_used, reason = "only `keep` takes the client, and it consumes the guard")]
    fn deref(&self) -> &Client {
        self.client.as_ref().expect("the client is there until the guard goes")
    }
}

impl DerefMut for PooledClient {
    #[expect(clippy::expect_used, reason = "only `keep` takes the client, and it consumes the guard")]
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("the client is there until the guard goes")
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_host_is_never_reached_in_clear_text() {
        for near in [
            "postgres://u@127.0.0.1/x",
            "postgres://u@localhost/x",
            "host=/run/pg user=u",
            "postgres://u@[::1]/x",
        ] {
            assert!(Database::new(near, 1, None).is_ok(), "{near}");
        }
        for far in [
            "postgres://u@db.example/x",
            "postgres://u@10.0.0.1/x?sslmode=prefer",
            "postgres://u@127.0.0.1,db.example/x",
        ] {
            assert!(matches!(Database::new(far, 1, None), Err(DatabaseFault::ClearText(_))), "{far}");
        }
        assert!(Database::new("postgres://u@db.example/x?sslmode=require", 1, None).is_ok());
    }
}
