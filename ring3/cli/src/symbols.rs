// SPDX-License-Identifier: GPL-2.0
//! An image's functions as an ELF file whose offsets are the image's addresses.
//!
//! A node's memory is a file without a header: what has the address A in the image is at offset A there. A reader of
//! symbols takes the difference of address and offset from the ELF file that it finds by the mapping's name. So in this file
//! that difference is zero, for the program header and for each section.

/// Offsets and sizes of ELF64, as in elf(5).
const HEADER: usize = 64;
const E_PHOFF: usize = 32;
const E_SHOFF: usize = 40;
const E_PHNUM: usize = 56;
const E_SHENTSIZE: usize = 58;
const E_SHNUM: usize = 60;
const PHENT: usize = 56;
const SHENT: usize = 64;
const SH_TYPE: usize = 4;
const SH_FLAGS: usize = 8;
const SH_ADDR: usize = 16;
const SH_OFFSET: usize = 24;
const SH_SIZE: usize = 32;

const SHT_NULL: u32 = 0;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const PT_LOAD: u32 = 1;
const PF_RX: u32 = 5;
/// An image has some 10 MiB of text. Larger is no image.
const TEXT_END_MAX: usize = 1 << 30;

fn get<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(get(bytes, at)?)).ok()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    bytes
        .get_mut(at..at.checked_add(value.len())?)?
        .copy_from_slice(value);
    Some(())
}

/// None: not an image with symbols.
pub fn at_offsets(image: &[u8]) -> Option<Vec<u8>> {
    let is_elf64 = image.starts_with(b"\x7fELF\x02\x01");
    let shentsize = u16::from_le_bytes(get(image, E_SHENTSIZE)?);
    if !is_elf64 || usize::from(shentsize) != SHENT {
        return None;
    }
    let count = usize::from(u16::from_le_bytes(get(image, E_SHNUM)?));
    let table = u64_at(image, E_SHOFF)?;
    let table = image.get(table..table.checked_add(count * SHENT)?)?;
    let mut headers = table.to_vec();
    let mut out = vec![0; HEADER + PHENT];
    put(&mut out, 0, image.get(..HEADER)?)?;
    let text = text(image, &mut headers, &mut out)?;
    let mut has_symbols = false;
    for header in headers.chunks_exact_mut(SHENT) {
        let kind = u32::from_le_bytes(get(header, SH_TYPE)?);
        let flags = u64::from_le_bytes(get(header, SH_FLAGS)?);
        let is_kept = matches!(kind, SHT_SYMTAB | SHT_STRTAB) && flags & SHF_ALLOC == 0;
        if is_kept {
            let (at, size) = (u64_at(header, SH_OFFSET)?, u64_at(header, SH_SIZE)?);
            out.resize(out.len().next_multiple_of(16), 0);
            put(header, SH_OFFSET, &(out.len() as u64).to_le_bytes())?;
            out.extend_from_slice(image.get(at..at.checked_add(size)?)?);
            has_symbols |= kind == SHT_SYMTAB;
        } else if flags & SHF_ALLOC == 0 {
            put(header, SH_TYPE, &SHT_NULL.to_le_bytes())?;
        }
    }
    if !has_symbols || text.is_empty() {
        return None;
    }
    out.resize(out.len().next_multiple_of(16), 0);
    let at = out.len() as u64;
    put(&mut out, E_SHOFF, &at.to_le_bytes())?;
    out.extend_from_slice(&headers);
    put(&mut out, E_PHOFF, &(HEADER as u64).to_le_bytes())?;
    put(&mut out, E_PHNUM, &1u16.to_le_bytes())?;
    let (start, len) = (text.start as u64, text.len() as u64);
    put(&mut out, HEADER, &PT_LOAD.to_le_bytes())?;
    put(&mut out, HEADER + 4, &PF_RX.to_le_bytes())?;
    // Offset, address, physical address, sizes in the file and in memory, alignment.
    for (place, value) in [start, start, start, len, len, 1].into_iter().enumerate() {
        put(&mut out, HEADER + 8 + 8 * place, &value.to_le_bytes())?;
    }
    Some(out)
}

/// Puts sections with code where their address says; all others of the memory's have no content. The place of the code.
fn text(image: &[u8], headers: &mut [u8], out: &mut Vec<u8>) -> Option<std::ops::Range<usize>> {
    let (mut start, mut end) = (usize::MAX, 0);
    for header in headers.chunks_exact_mut(SHENT) {
        let flags = u64::from_le_bytes(get(header, SH_FLAGS)?);
        let (addr, from) = (u64_at(header, SH_ADDR)?, u64_at(header, SH_OFFSET)?);
        let size = u64_at(header, SH_SIZE)?;
        if flags & SHF_ALLOC == 0 {
            continue;
        }
        put(header, SH_OFFSET, &(addr as u64).to_le_bytes())?;
        if flags & SHF_EXECINSTR == 0 {
            put(header, SH_TYPE, &SHT_NOBITS.to_le_bytes())?;
            continue;
        }
        let to = addr.checked_add(size).filter(|to| *to <= TEXT_END_MAX)?;
        if addr < HEADER + PHENT {
            return None;
        }
        out.resize(out.len().max(to), 0);
        put(out, addr, image.get(from..from.checked_add(size)?)?)?;
        (start, end) = (start.min(addr), end.max(to));
    }
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image() {
        assert!(at_offsets(b"").is_none());
        assert!(at_offsets(b"\x7fELF\x02\x01").is_none());
        let mut cut = vec![0; HEADER];
        put(&mut cut, 0, b"\x7fELF\x02\x01").unwrap();
        put(&mut cut, E_SHENTSIZE, &64u16.to_le_bytes()).unwrap();
        assert!(at_offsets(&cut).is_none(), "no sections");
        put(&mut cut, E_SHNUM, &9u16.to_le_bytes()).unwrap();
        put(&mut cut, E_SHOFF, &u64::MAX.to_le_bytes()).unwrap();
        assert!(at_offsets(&cut).is_none(), "sections that are not there");
    }

    #[test]
    fn code_stands_where_its_address_says() {
        // A header, code at offset 64 with the address 0x1000, symbols, and the table.
        let mut image = vec![0; HEADER];
        put(&mut image, 0, b"\x7fELF\x02\x01").unwrap();
        put(&mut image, E_SHENTSIZE, &64u16.to_le_bytes()).unwrap();
        put(&mut image, E_SHNUM, &3u16.to_le_bytes()).unwrap();
        image.extend_from_slice(b"code");
        image.extend_from_slice(b"symbols!");
        let at = image.len() as u64;
        put(&mut image, E_SHOFF, &at.to_le_bytes()).unwrap();
        let section = |kind: u32, flags: u64, addr: u64, offset: u64, size: u64| {
            let mut header = vec![0; SHENT];
            put(&mut header, SH_TYPE, &kind.to_le_bytes()).unwrap();
            for (at, value) in [
                (SH_FLAGS, flags),
                (SH_ADDR, addr),
                (SH_OFFSET, offset),
                (SH_SIZE, size),
            ] {
                put(&mut header, at, &value.to_le_bytes()).unwrap();
            }
            header
        };
        image.extend(section(0, 0, 0, 0, 0));
        image.extend(section(1, SHF_ALLOC | SHF_EXECINSTR, 0x1000, 64, 4));
        image.extend(section(SHT_SYMTAB, 0, 0, 68, 8));
        let out = at_offsets(&image).expect("an image");
        assert_eq!(&out[0x1000..0x1004], b"code");
        let table = u64_at(&out, E_SHOFF).unwrap();
        let header = |number: usize, at: usize| u64_at(&out, table + number * SHENT + at).unwrap();
        assert_eq!(header(1, SH_OFFSET), header(1, SH_ADDR));
        let symbols = header(2, SH_OFFSET);
        assert_eq!(&out[symbols..symbols + 8], b"symbols!");
        assert_eq!(u64_at(&out, HEADER + 8), u64_at(&out, HEADER + 16));
    }
}
