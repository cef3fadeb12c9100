//! Whether the disk has room.

use polypath::proto::quantity;

use crate::error::Error;
use crate::transfer::folder::Folder;

/// Rejects a file that the disk has no room for; returns the number of free bytes.
pub(crate) fn has_room(folder: &Folder, bytes: u64) -> Result<u64, Error> {
    let free = folder.free().map_err(|error| Error::file("use", &folder.path(""), &error))?;
    if bytes <= free {
        return Ok(free);
    }
    Err(Error::File {
        verb: "write into",
        path: folder.path(""),
        why: format!("{FULL}: {} needed, {} free", quantity::size(bytes), quantity::size(free)),
    })
}

/// The operating system's words for a full disk.
const FULL: &str = "no space left on device";

/// Whether a disk was full.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error, Error::File { why, .. } if why.starts_with(FULL))
}
