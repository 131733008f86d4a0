//! Bytes of a file at a place, in one call of the system where it has one.

use std::fs::File;
use std::io::Result;

/// Reads from the beginning, as much as is there or fits.
#[cfg(unix)]
pub(crate) fn read(file: &File, bytes: &mut [u8]) -> Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, 0)
}

/// Writes all of it.
#[cfg(unix)]
pub(crate) fn write(file: &File, place: u64, bytes: &[u8]) -> Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, place)
}

#[cfg(not(unix))]
pub(crate) fn read(mut file: &File, bytes: &mut [u8]) -> Result<usize> {
    use std::io::{Read, Seek};
    file.rewind()?;
    file.read(bytes)
}

#[cfg(not(unix))]
pub(crate) fn write(mut file: &File, place: u64, bytes: &[u8]) -> Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(place))?;
    file.write_all(bytes)
}
