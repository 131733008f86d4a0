//! [`PostgresServer`]: a real PostgreSQL server of our own, which is gone when the test is.
//!
//! It keeps its files in a folder of its own, listens on a socket in that folder and nowhere else, and syncs to disk like any other. A
//! shell stands guard over it: when the pipe from the test closes, however the test ended, it stops the server by its
//! process id and removes the folder.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the server, says where, waits for the end of its input, and clears up. `$0` is where the programs are.
const GUARD: &str = r#"
set -e
cd /
trap '' INT TERM HUP
folder=$(mktemp -d "${TMPDIR:-/tmp}/demur-postgres.XXXXXX")
trap '"$0/pg_ctl" -D "$folder/data" -m immediate -s stop </dev/null >/dev/null 2>&1; rm -rf "$folder"' EXIT
"$0/initdb" -D "$folder/data" -U demur -A trust -E UTF8 --locale=C --no-sync </dev/null >&2
cat >> "$folder/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$folder'
max_connections = 300
END
"$0/pg_ctl" -D "$folder/data" -l "$folder/log" -s -w start </dev/null >&2 || { cat "$folder/log" >&2; exit 1; }
echo "$folder"
cat >/dev/null
"#;

/// Debian's package of the server, and Fedora's and Homebrew's for those who look for a name.
const MISSING: &str = "these tests need a PostgreSQL server, but no folder has the programs `initdb`, `pg_ctl` and `postgres`; \
                       install one (Debian: `apt-get install postgresql`), or put its folder on the PATH";

/// A server that runs as long as this value lives.
///
/// ```
/// let server = demur_testkit::PostgresServer::shared();
/// let url = server.database();
/// server.sql(&url, "CREATE TABLE numbers AS SELECT generate_series(1, 3) AS n");
/// assert_eq!(server.sql(&url, "SELECT sum(n) FROM numbers"), "6");
/// ```
pub struct PostgresServer {
    guard: Child,
    folder: PathBuf,
    programs: PathBuf,
}

impl PostgresServer {
    /// One server for all tests of a program.
    #[expect(
        clippy::panic,
        reason = "a test cannot go on without its server, and must not be skipped in silence"
    )]
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<PostgresServer> = OnceLock::new();
        SERVER.get_or_init(|| Self::start().unwrap_or_else(|message| panic!("{message}")))
    }

    /// A server of one's own, for tests that stop it or change its settings.
    pub fn start() -> Result<Self, String> {
        let programs = programs().ok_or(MISSING)?;
        let mut guard = as_owner("sh");
        guard.args(["-c", GUARD]).arg(&programs);
        let guard = guard.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut guard = guard.map_err(|error| format!("no shell could be started: {error}"))?;
        let mut folder = String::new();
        if let Some(output) = guard.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut folder);
        }
        if folder.is_empty() {
            let mut said = String::new();
            guard.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
            return Err(format!("the PostgreSQL server did not start: {said}"));
        }
        Ok(Self { guard, folder: PathBuf::from(folder.trim_end()), programs })
    }

    /// A new database, by its URL.
    pub fn database(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://demur@/{database}?host={}", self.folder.display())
    }

    /// What the server answers: a line for each row, its columns separated by `|`.
    #[expect(clippy::panic, reason = "a test cannot go on when its own preparations fail")]
    pub fn sql(&self, url: &str, statement: &str) -> String {
        let ours = self.programs.join("psql");
        let mut psql = Command::new(if ours.exists() { ours } else { PathBuf::from("psql") });
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
        match psql.stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
            }
            Ok(output) => panic!("{statement}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("psql could not be started: {error}"),
        }
    }

    /// Stops the server as a loss of power would, without stopping the machine.
    pub fn crash(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Starts it again.
    pub fn recover(&self) {
        self.control(&["-l", &self.folder.join("log").to_string_lossy(), "-w", "start"]);
    }

    fn control(&self, words: &[&str]) {
        let mut control = as_owner(&self.programs.join("pg_ctl").to_string_lossy());
        control.arg("-D").arg(self.folder.join("data")).arg("-s").args(words).current_dir("/");
        let status = control.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "pg_ctl {words:?} failed");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// The folder with the server's programs: the latest of Debian's, or one on the PATH.
fn programs() -> Option<PathBuf> {
    let complete =
        |folder: &PathBuf| ["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).exists());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| std::cmp::Reverse(version(path)));
    let debian = versions.into_iter().map(|path| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian.chain(std::env::split_paths(&path)).find(complete)
}

/// A command under our own name; the server refuses to run as root, who becomes `postgres` for it.
fn as_owner(program: &str) -> Command {
    let user = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    if user.is_ok_and(|output| output.stdout == b"0\n") {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", program]);
        return command;
    }
    Command::new(program)
}
