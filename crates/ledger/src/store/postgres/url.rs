//! [`PostgresUrl`]: which database, and where this machine keeps its own memory of the ledger there.
//!
//! The password goes to the server and nowhere else: neither the text nor any error nor a file name has it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::{Hash, LedgerError};

const FORM: &str =
    "`postgres://user@host:port/database`, or `postgres:///database?host=/folder` for a socket in a folder";
/// Where a server on the same machine listens, if nothing else is said.
const SOCKETS: &str = "/var/run/postgresql";
const PORT: u16 = 5432;
/// How long a silent network is believed in.
const SILENCE: Duration = Duration::from_secs(30);

/// A PostgreSQL database.
///
/// The URL is that of libpq: `postgres://user:password@host:port/database?key=value`. Without a host it is the server
/// on this machine; without a password it is that of `PGPASSWORD`.
///
/// ```
/// use demur_ledger::store::PostgresUrl;
///
/// let url: PostgresUrl = "postgresql://owner:secret@db.example.org/budgets".parse()?;
/// assert_eq!(url.to_string(), "postgres://owner@db.example.org/budgets");
/// # Ok::<(), demur_ledger::LedgerError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    config: Box<Config>,
    folder: PathBuf,
}

impl std::str::FromStr for PostgresUrl {
    type Err = LedgerError;

    fn from_str(text: &str) -> Result<Self, LedgerError> {
        // What the library says of a URL it cannot read may quote the password.
        let config = text.parse::<Config>().ok();
        let config = config.filter(|_| text.starts_with("postgres://") || text.starts_with("postgresql://"));
        let config = config.ok_or_else(|| {
            LedgerError::misuse(
                "ledger.url",
                format!("the URL of the PostgreSQL ledger cannot be read: it is {FORM}"),
            )
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            let text = "the URL of the PostgreSQL ledger asks for TLS, which is not there yet; use a socket on the same machine, \
                        or a tunnel, without `sslmode`";
            return Err(LedgerError::misuse("ledger.url", text));
        }
        Ok(Self { config: Box::new(complete(config)), folder: state_folder()? })
    }
}

impl PostgresUrl {
    /// The same database, with the anchor and the key in another folder than `$XDG_STATE_HOME/demur`.
    pub fn keep_in(mut self, folder: &Path) -> Self {
        self.folder = folder.to_owned();
        self
    }

    /// The folder of the anchor and the key.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file in that folder with this ending, named by a hash of the URL without its password.
    pub(crate) fn file(&self, ending: &str) -> PathBuf {
        let name = Hash::of(self.to_string().as_bytes()).to_string();
        self.folder.join(format!("postgres-{}.{ending}", &name[..32]))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }
}

/// Without the password, and without what says how to connect rather than where.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{}@", Escaped(user))?;
        }
        let mut folders = Vec::new();
        let mut comma = "";
        for (place, host) in self.config.get_hosts().iter().enumerate() {
            let port = self.config.get_ports().get(place).or(self.config.get_ports().last());
            let port = port.filter(|port| **port != PORT);
            match host {
                Host::Tcp(name) => {
                    write!(f, "{comma}{}", Escaped(name))?;
                    port.iter().try_for_each(|port| write!(f, ":{port}"))?;
                    comma = ",";
                }
                #[cfg(unix)]
                Host::Unix(folder) => folders.push((folder.to_string_lossy(), port)),
            }
        }
        let address = self.config.get_hostaddrs().iter().map(ToString::to_string);
        let address: Vec<String> = address.collect();
        write!(f, "/{}", Escaped(self.config.get_dbname().unwrap_or_default()))?;
        let mut mark = "?";
        for (folder, port) in folders {
            write!(f, "{mark}host={}", Escaped(&folder))?;
            port.iter().try_for_each(|port| write!(f, "&port={port}"))?;
            mark = "&";
        }
        if !address.is_empty() {
            write!(f, "{mark}hostaddr={}", address.join(","))?;
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// With everything but letters, digits and `-._~/` as `%` and two digits.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                write!(f, "{}", char::from(byte))
            }
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

/// Fills in what the URL leaves open: who we are, where the server is, when to give up on a silent one.
fn complete(mut config: Config) -> Config {
    config.application_name(format!("demur {}", std::process::id()));
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.host(SOCKETS);
    }
    if let (None, Some(password)) = (config.get_password(), std::env::var_os("PGPASSWORD")) {
        config.password(password.as_encoded_bytes());
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(SILENCE);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_keepalives_idle() > SILENCE {
        config.keepalives_idle(SILENCE);
    }
    config
}

/// `$XDG_STATE_HOME/demur`, or `~/.local/state/demur`.
fn state_folder() -> Result<PathBuf, LedgerError> {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home =
        || std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    named.or_else(home).map(|folder| folder.join("demur")).ok_or_else(|| {
        let text = "the anchor of a PostgreSQL ledger is kept in the home folder, but there is none; set HOME or XDG_STATE_HOME";
        LedgerError::misuse("ledger.state", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PostgresUrl {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_shown_leads_to_the_same_database() {
        for (given, shown) in [
            ("postgres://u:secret@h/d", "postgres://u@h/d"),
            ("postgresql://u:secret@h:5432/d?connect_timeout=3", "postgres://u@h/d"),
            ("postgres://u@h:77/d?password=secret", "postgres://u@h:77/d"),
            ("postgres://a,b:77/d", "postgres://a,b:77/d"),
            ("postgres://%C3%A4%40:secret@h/d%2Fe", "postgres://%C3%A4%40@h/d/e"),
            ("postgres:///d?host=/tmp/a%20b&port=77&user=u", "postgres://u@/d?host=/tmp/a%20b&port=77"),
            ("postgres://u:a?b=secret@h/d", "postgres://u@h/d"),
            ("postgres:///d", "postgres:///d?host=/var/run/postgresql"),
            ("postgres://u@/d?hostaddr=127.0.0.1", "postgres://u@/d?hostaddr=127.0.0.1"),
        ] {
            assert_eq!(url(given).to_string(), shown);
            assert_eq!(url(shown).to_string(), shown);
            assert_eq!(format!("{:?}", url(given)), shown);
        }
    }

    #[test]
    fn a_password_does_not_change_where_the_anchor_is() {
        let folder = Path::new("/state");
        let file = |text| url(text).keep_in(folder).file("anchor");
        assert_eq!(file("postgres://u:secret@h/d"), file("postgresql://u@h:5432/d"));
        assert_ne!(file("postgres://u@h/d"), file("postgres://u@h/e"));
        assert!(file("postgres://u@h/d").starts_with(folder));
    }

    #[test]
    fn no_error_quotes_the_url() {
        for text in [
            "postgres://u:secret@h/d?key",
            "postgres://u:p@h:secret/d",
            "postgres://u@h/d?secret=1",
            "postgres://u:secret@h/d?sslmode=require",
            "postgres:secret",
        ] {
            let error = text.parse::<PostgresUrl>().unwrap_err();
            assert_eq!(error.code(), "ledger.url", "{text}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
