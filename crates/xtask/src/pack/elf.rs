//! The little that has to be known about a program file: 64-bit little-endian ELF.

/// What a program asks of the machine that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Newest version of the C library that it names; none when it is static.
    pub(super) glibc: Option<(u32, u32)>,
    /// No symbol table is left in it.
    pub(super) stripped: bool,
}

/// Section type of a symbol table that a program does not need to run.
const SHT_SYMTAB: u32 = 2;

/// Reads a program; none if the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<Program> {
    // Magic, 64-bit class, little-endian.
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(field(bytes, 0x28)?)).ok()?;
    let size = usize::from(u16::from_le_bytes(field(bytes, 0x3a)?));
    let count = usize::from(u16::from_le_bytes(field(bytes, 0x3c)?));
    let mut stripped = true;
    for index in 0..count {
        let header = index.checked_mul(size)?.checked_add(table)?;
        let kind = u32::from_le_bytes(field(bytes, header.checked_add(4)?)?);
        stripped &= kind != SHT_SYMTAB;
    }
    Some(Program {
        glibc: newest_glibc(bytes),
        stripped,
    })
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Symbol versions are NUL-ended strings such as `GLIBC_2.34`.
fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    const PREFIX: &[u8] = b"GLIBC_";
    let starts = bytes
        .windows(PREFIX.len())
        .enumerate()
        .filter(|(_, window)| *window == PREFIX);
    starts
        .filter_map(|(at, _)| {
            let rest = &bytes[at + PREFIX.len()..];
            let text =
                std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()?;
            let mut numbers = text.split('.').map(str::parse::<u32>);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .max()
}

/// A smallest program with one section and these bytes behind it.
#[cfg(test)]
pub(super) fn sample(section: u32, tail: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 0x40];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[0x28..0x30].copy_from_slice(&0x40_u64.to_le_bytes());
    bytes[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
    bytes[0x3c..0x3e].copy_from_slice(&1_u16.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(section.to_le_bytes());
    bytes.extend([0; 56]);
    bytes.extend(tail);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_needs() {
        let check = |section, tail: &[u8], glibc, stripped| {
            assert_eq!(
                read(&sample(section, tail)),
                Some(Program { glibc, stripped })
            );
        };
        check(1, b"", None, true);
        check(SHT_SYMTAB, b"", None, false);
        check(
            1,
            b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_PRIVATE\0",
            Some((2, 34)),
            true,
        );
        check(1, b"\0GLIBC_2.2.5\0", Some((2, 2)), true);
    }

    #[test]
    fn what_is_no_program_is_told_apart() {
        assert_eq!(read(b"#!/bin/sh\n"), None);
        assert_eq!(read(b""), None);
        assert_eq!(
            read(&sample(1, b"")[..0x50]),
            Some(Program {
                glibc: None,
                stripped: true
            })
        );
        assert_eq!(read(&sample(1, b"")[..0x42]), None);
    }
}
