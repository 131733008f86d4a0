//! A worker on a disk that fails, and what is on that disk afterwards.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use demur_ledger::Location;
use demur_testkit::{Witness, create_or_open, options};

/// No run takes longer than this, or it hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// What fails, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of the call, from 1; 0 for none.
    pub(crate) at: u64,
    /// As `faulty_disk.c` names it.
    pub(crate) mode: &'static str,
    /// Whether all later calls fail too.
    pub(crate) lasting: bool,
    /// The kind of calls that count; all, if none is named.
    pub(crate) only: Option<&'static str>,
    /// A later call, before which the worker is killed; 0 for none.
    pub(crate) end: u64,
    /// Bytes in an answer.
    pub(crate) answers: usize,
}

/// A folder with a ledger, what a power cut would leave of it, and what was acknowledged.
pub(crate) struct Disk {
    folder: tempfile::TempDir,
    pub(crate) witness: Witness,
}

/// How a run ended.
pub(crate) struct Run {
    /// The call that failed; nothing if it was not reached.
    pub(crate) struck: Option<String>,
    /// Whether the worker came to its end.
    pub(crate) done: bool,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let disk = Self { folder: folder.unwrap(), witness: Witness::default() };
        ["disk", "shadow"].iter().for_each(|name| std::fs::create_dir(disk.path(name)).unwrap());
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn location(&self) -> Location {
        Location::Sqlite(self.path("disk").join("ledger.db"))
    }

    /// The worker does everything once, on a disk that fails.
    pub(crate) fn run(&mut self, fault: Fault) -> Run {
        let (said, told) = (self.path("said"), self.path("told"));
        let file = |path: &Path| Stdio::from(std::fs::File::create(path).unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_torture"));
        command.args(["script", &self.location().to_string(), &fault.answers.to_string()]);
        command.stdin(Stdio::null()).stdout(file(&said)).stderr(file(&told));
        command.env("LD_PRELOAD", library()).env("FAULTY_FOLDER", self.path("disk"));
        command.env("FAULTY_SHADOW", self.path("shadow"));
        command.env("FAULTY_AT", fault.at.to_string()).env("FAULTY_MODE", fault.mode);
        command.env("FAULTY_END", fault.end.to_string());
        if let Some(kind) = fault.only {
            command.env("FAULTY_ONLY", kind);
        }
        if fault.lasting {
            command.env("FAULTY_LASTING", "1");
        }
        let (mut child, start) = (command.spawn().unwrap(), Instant::now());
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > LONGEST {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{fault:?}: the worker hangs");
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        let (said, told) = (std::fs::read_to_string(said).unwrap(), std::fs::read_to_string(told).unwrap());
        // A line without an end was not said.
        for line in said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            self.witness.hear(line);
        }
        let struck = told.lines().find_map(|line| line.strip_prefix("fault ")).map(str::to_owned);
        let panicked = told.lines().find(|line| !line.starts_with("fault "));
        assert_eq!(panicked, None, "{fault:?}");
        Run { struck, done: said.ends_with("done\n") }
    }

    /// Whether all that was acknowledged is on the disk, for a program that comes after the crash of another.
    ///
    /// Looking changes files, so a copy is looked at; the index of the log is of no use without its processes.
    pub(crate) fn holds(&mut self) -> Result<(), String> {
        let files = std::fs::read_dir(self.path("disk")).unwrap().map(|file| file.unwrap());
        let copy = self.folder_of(files.map(|file| (file.file_name().into_string().unwrap(), file.path())));
        self.finish_creation(&copy)?;
        self.witness.check(&copy, &options()).map(|_| ())
    }

    /// The same after a power cut: on a disk that has only what was synced.
    pub(crate) fn holds_without_power(&mut self) -> Result<(), String> {
        let names = std::fs::read_to_string(self.path("shadow").join("names")).unwrap_or_default();
        let names = names.lines().filter_map(|line| line.split_once(' '));
        let left =
            self.folder_of(names.map(|(inode, name)| (name.to_owned(), self.path("shadow").join(inode))));
        self.finish_creation(&left)?;
        self.witness.check_entries(&left, &options()).map(|_| ())
    }

    /// A new folder with these contents under these names; what was never synced is empty.
    fn folder_of(&self, files: impl Iterator<Item = (String, PathBuf)>) -> Location {
        let folder = self.path("copy");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for (name, contents) in files.filter(|(name, _)| !name.ends_with("-shm")) {
            std::fs::write(folder.join(name), std::fs::read(contents).unwrap_or_default()).unwrap();
        }
        Location::Sqlite(folder.join("ledger.db"))
    }

    /// Where nothing was acknowledged, the ledger may be half made; it can be finished.
    fn finish_creation(&self, location: &Location) -> Result<(), String> {
        if !self.witness.is_empty() {
            return Ok(());
        }
        let made = create_or_open(location);
        made.map(|_| ()).map_err(|error| format!("it cannot be made: [{}] {error}", error.code()))
    }
}

/// The faulty disk, compiled once per test program.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faulty_disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("faulty_disk.c");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-O1", "-Wall", "-shared", "-fPIC", "-o"]).args([&path, &source]);
        assert!(command.arg("-lpthread").stdin(Stdio::null()).status().unwrap().success());
        (folder, path)
    });
    path
}
