//! Digests of files and of their blocks.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};

/// Bytes of a block's digest. Blocks only find where two files agree; the whole file has a full
/// SHA-256.
pub(crate) const DIGEST: usize = 16;
/// Maximum number of blocks that are compared.
pub(crate) const MOST_BLOCKS: u64 = 1024;
/// Smallest block in bytes.
const LEAST: u64 = 1 << 20;
/// Bytes read at once.
const READ: usize = 256 << 10;

/// Size in bytes of the blocks of a file with `size` bytes.
pub(crate) fn block_size(size: u64) -> u64 {
    size.div_ceil(MOST_BLOCKS).max(LEAST).checked_next_power_of_two().unwrap_or(1 << 63)
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Takes the digest of a block, and the state of the SHA-256 behind it; true accepts the block.
type OnBlock<'a> = dyn FnMut([u8; DIGEST], &Sha256) -> bool + 'a;

/// Reads the first `bytes` bytes of a file and passes the digest of each block to `on_block` until
/// that returns false. Returns the SHA-256 state after the accepted blocks, and their length in
/// bytes; less than `bytes` if the file is shorter.
pub(crate) fn read_blocks(
    file: &mut File,
    bytes: u64,
    block: u64,
    on_block: &mut OnBlock<'_>,
) -> io::Result<(Sha256, u64)> {
    file.seek(SeekFrom::Start(0))?;
    let mut all = Sha256::new();
    let mut accepted = 0;
    let mut buffer = vec![0; READ];
    while accepted < bytes {
        let size = block.min(bytes - accepted);
        let mut with_block = all.clone();
        let mut digest = Sha256::new();
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(READ).min(READ);
            let count = match file.read(&mut buffer[..most]) {
                Ok(0) => return Ok((all, accepted)),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            with_block.update(&buffer[..count]);
            digest.update(&buffer[..count]);
            left -= count as u64;
        }
        let mut short = [0; DIGEST];
        short.copy_from_slice(&digest.finalize()[..DIGEST]);
        if !on_block(short, &with_block) {
            break;
        }
        all = with_block;
        accepted += size;
    }
    Ok((all, accepted))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_has_at_most_1024_blocks() {
        for size in [0, 1, 1 << 20, (1 << 30) + 1, 5_000_000_000_000, u64::MAX] {
            let block = block_size(size);
            assert!(size.div_ceil(block) <= MOST_BLOCKS, "{size}");
        }
        // At most 1 % of a GB is sent again after an interruption.
        assert_eq!(block_size(1_000_000_000), 1 << 20);
    }

    #[test]
    fn accepted_blocks_are_hashed_and_no_others() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..2500u32).map(|i| (i / 7) as u8).collect();
        file.write_all(&content).unwrap();
        let mut seen = Vec::new();
        let (all, bytes) = read_blocks(&mut file, 2500, 1000, &mut |digest, _| {
            seen.push(digest);
            true
        })
        .unwrap();
        assert_eq!((bytes, seen.len()), (2500, 3));
        assert_eq!(all.finalize(), Sha256::digest(&content));
        assert_eq!(seen[2], Sha256::digest(&content[2000..])[..DIGEST]);
        let mut count = 0;
        let (all, bytes) = read_blocks(&mut file, 2500, 1000, &mut |_, _| {
            count += 1;
            count < 3
        })
        .unwrap();
        assert_eq!((bytes, all.finalize()), (2000, Sha256::digest(&content[..2000])));
        // A file that has become shorter ends the comparison at its last whole block.
        file.set_len(1500).unwrap();
        assert_eq!(read_blocks(&mut file, 2500, 1000, &mut |_, _| true).unwrap().1, 1000);
    }
}
