//! Executable files: whether a preloaded library can replace the functions that a program calls.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Largest part of a file that is read at once.
const MOST: u64 = 1 << 20;

/// Types of segments.
const INTERPRETER: u64 = 3;
const NOTE: u64 = 4;

/// Sections that Go's linker makes, also with `-s -w`.
const GO: [&[u8]; 2] = [b".go.buildinfo", b".gopclntab"];

/// An executable file of 64 bits, in the byte order of the hosts that polypath runs on.
struct Elf<R> {
    file: R,
    header: [u8; 64],
}

/// Whether a program makes system calls of its own: it is statically linked, or written in Go,
/// whose programs call the kernel even if they use the C library, too.
pub(crate) fn makes_system_calls(path: &Path) -> bool {
    // What cannot be read is another program's to report.
    File::open(path).and_then(judge).unwrap_or(false)
}

fn judge(mut file: impl Read + Seek) -> io::Result<bool> {
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    // Scripts are not: their interpreter is run.
    if header[..6] != *b"\x7fELF\x02\x01" {
        return Ok(false);
    }
    let mut elf = Elf { file, header };
    let segments = elf.table(32, 54)?;
    let dynamic = segments.iter().any(|segment| number(segment, 0, 4) == INTERPRETER);
    Ok(!dynamic || elf.has_go_note(&segments)? || elf.has_go_section()?)
}

/// A number at an offset; 0 beyond the end.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let found = bytes.get(at..at + size).unwrap_or_default();
    found.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

impl<R: Read + Seek> Elf<R> {
    /// A part of the file, as much as there is.
    fn part(&mut self, at: u64, size: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        self.file.by_ref().take(size.min(MOST)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The entries of a table, whose place is at `place` in the header, the size and the number of
    /// its entries at `sizes`.
    fn table(&mut self, place: usize, sizes: usize) -> io::Result<Vec<Vec<u8>>> {
        let (size, count) = (number(&self.header, sizes, 2), number(&self.header, sizes + 2, 2));
        let bytes = self.part(number(&self.header, place, 8), size * count)?;
        Ok(bytes.chunks(size.max(1) as usize).map(<[u8]>::to_vec).collect())
    }

    /// Whether there is a note of Go's linker: the build id.
    fn has_go_note(&mut self, segments: &[Vec<u8>]) -> io::Result<bool> {
        for segment in segments.iter().filter(|segment| number(segment, 0, 4) == NOTE) {
            let notes = self.part(number(segment, 8, 8), number(segment, 32, 8))?;
            let mut rest = &notes[..];
            while rest.len() >= 12 {
                let sizes = [number(rest, 0, 4), number(rest, 4, 4)].map(|size| size as usize);
                let [name, value] = sizes.map(|size| size.next_multiple_of(4));
                if rest[12..].starts_with(b"Go\0") && sizes[0] == 4 {
                    return Ok(true);
                }
                rest = rest.get(12 + name + value..).unwrap_or_default();
            }
        }
        Ok(false)
    }

    fn has_go_section(&mut self) -> io::Result<bool> {
        let sections = self.table(40, 58)?;
        let at = number(&self.header, 62, 2) as usize;
        let Some(names) = sections.get(at) else { return Ok(false) };
        let names = self.part(number(names, 24, 8), number(names, 32, 8))?;
        Ok(names.split(|byte| *byte == 0).any(|name| GO.contains(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file with segments of these types; the notes belong to the last one, and the sections have
    /// these names.
    fn file(segments: &[u32], notes: &[u8], names: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0);
        let notes_at = 64 + 56 * segments.len();
        let names_at = notes_at + notes.len();
        let sections_at = names_at + names.len();
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[40..48].copy_from_slice(&(sections_at as u64).to_le_bytes());
        let sizes = [56, segments.len() as u16, 64, 1, 0];
        for (at, size) in sizes.iter().enumerate() {
            bytes[54 + 2 * at..56 + 2 * at].copy_from_slice(&size.to_le_bytes());
        }
        for kind in segments {
            let mut segment = vec![0; 56];
            segment[..4].copy_from_slice(&kind.to_le_bytes());
            segment[8..16].copy_from_slice(&(notes_at as u64).to_le_bytes());
            segment[32..40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
            bytes.extend(segment);
        }
        bytes.extend(notes);
        bytes.extend(names);
        let mut section = vec![0; 64];
        section[24..32].copy_from_slice(&(names_at as u64).to_le_bytes());
        section[32..40].copy_from_slice(&(names.len() as u64).to_le_bytes());
        bytes.extend(section);
        bytes
    }

    fn judged(bytes: Vec<u8>) -> bool {
        judge(Cursor::new(bytes)).unwrap_or(false)
    }

    #[test]
    fn static_programs_and_those_of_go_make_system_calls() {
        assert!(judged(file(&[1], b"", b"")));
        assert!(!judged(file(&[1, 3], b"", b"\0.text\0")));
        assert!(judged(file(&[1, 3], b"", b"\0.text\0.gopclntab\0")));
        let other = *b"\x04\0\0\0\x04\0\0\0\x01\0\0\0GNU\0abcd";
        let go = *b"\x04\0\0\0\x04\0\0\0\x04\0\0\0Go\0\0abcd";
        assert!(!judged(file(&[3, 4], &other, b"")));
        assert!(judged(file(&[3, 4], &[other, go].concat(), b"")));
    }

    #[test]
    fn other_files_are_run_as_before() {
        assert!(!judged(b"#!/bin/sh\nexit 0\n".repeat(10)));
        assert!(!judged(Vec::new()));
        assert!(!makes_system_calls(Path::new("/does/not/exist")));
        assert!(!makes_system_calls(Path::new("/")));
        // Offsets and sizes beyond the end.
        let notes = b"\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\0\0\0Go";
        assert!(!judged(file(&[3, 4], notes, b"")));
        for byte in [32, 40, 54, 56, 58, 60, 62] {
            let mut broken = file(&[3, 4], b"", b"");
            broken[byte..byte + 2].fill(0xff);
            judged(broken);
        }
    }

    #[test]
    fn the_tests_themselves_can_be_preloaded() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(makes_system_calls(&own), cfg!(target_env = "musl"));
    }
}
