//! Folders whose names survive a crash of the machine.

use std::io::Result;
use std::path::Path;

/// Makes a folder with all above it, durably.
pub(crate) fn make(folder: &Path) -> Result<()> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    std::fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(sync_name)
}

/// Makes the name of a file or folder durable: a name is on disk once the folder it stands in is.
#[cfg(unix)]
pub(crate) fn sync_name(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be synced; names are durable when files are.
#[cfg(not(unix))]
pub(crate) fn sync_name(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_with_all_above_them() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        make(&deep).unwrap();
        assert!(deep.is_dir());
        make(&deep).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(make(&folder.path().join("file/d")).is_err());
    }
}
