// SPDX-License-Identifier: GPL-2.0
//! The kernel image as a file: finds it, and checks it before any of its code runs.
//!
//! The image is an ELF object linked at address 0. Its PT_LOADs are copied to their addresses
//! as offsets into the region; it relocates itself when it boots. The file's first PT_LOAD
//! starts with struct ring3_region, whose upper fields say what this is.

use std::fs::File;
use std::io::Read;
use std::mem::offset_of;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, EM_X86_64, ET_DYN, ET_EXEC, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::LittleEndian;
use ring3_abi::{ring3_region, RING3_ABI, RING3_FLAVOUR_SIM, RING3_MAGIC, RING3_REGION_MAX};

use crate::error::{Error, Result};

/// File names of the flavours: one vCPU, and several.
const IMAGE_UP: &str = "ring3-up.image";
const IMAGE_SMP: &str = "ring3-smp.image";
/// Flavours that can be named; the file name contains the flavour.
const FLAVOURS: [(&str, &str); 3] = [
    ("up", IMAGE_UP),
    ("smp", IMAGE_SMP),
    ("sim", "ring3-sim.image"),
];
/// `flavour` of struct ring3_region: an image that can have several vCPUs.
const FLAVOUR_SMP: u32 = 1;
/// Names the image for programs that are not installed beside it (tests).
const IMAGE_ENV: &str = "RING3_IMAGE";
/// ELF header and program headers lie in the file's first bytes.
const HEAD_MAX: u64 = 4096;
const PAGE: u64 = 4096;

/// A checked image file.
#[derive(Debug)]
pub(crate) struct Image {
    pub path: PathBuf,
    pub file: File,
    pub segments: Vec<Segment>,
    /// Size in the region, including bss.
    pub size: u64,
    /// Offsets of the code.
    pub text: Range<u64>,
    pub boot: u64,
    pub enter: u64,
    pub fixup: u64,
    pub version: String,
    pub flavour: u32,
}

/// One PT_LOAD: `len` bytes at `offset` of the file go to `address` of the region.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub offset: u64,
    pub address: u64,
    pub len: u64,
}

/// What $RING3_IMAGE names.
pub(crate) fn image_of_environment() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(IMAGE_ENV)?);
    Some(std::path::absolute(&path).unwrap_or(path))
}

impl Image {
    /// Whether time is virtual.
    pub fn is_sim(&self) -> bool {
        self.flavour == RING3_FLAVOUR_SIM
    }

    /// Opens `explicit`, or the file that $RING3_IMAGE names, or the one that is installed with
    /// this program and supports this number of vCPUs.
    pub fn open(explicit: Option<&Path>, cpus: u32) -> Result<Image> {
        let by_cpus = if cpus > 1 { IMAGE_SMP } else { IMAGE_UP };
        let flavour = FLAVOURS
            .iter()
            .find(|(flavour, _)| explicit == Some(Path::new(flavour)));
        let image = match flavour {
            Some((_, name)) => Image::first_of(default_places(name), name)?,
            None => Image::find(explicit, by_cpus)?,
        };
        if cpus > 1 && image.flavour != FLAVOUR_SMP {
            return Err(Error::ImageOneCpu {
                path: image.path,
                cpus,
            });
        }
        Ok(image)
    }

    fn find(explicit: Option<&Path>, name: &'static str) -> Result<Image> {
        let looked = match explicit.map(Path::to_owned).or_else(image_of_environment) {
            Some(path) => vec![path],
            None => default_places(name),
        };
        Image::first_of(looked, name)
    }

    fn first_of(looked: Vec<PathBuf>, name: &'static str) -> Result<Image> {
        for path in &looked {
            match File::open(path) {
                Ok(file) => return Image::check(path.clone(), file),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(path)(error)),
            }
        }
        Err(match name {
            IMAGE_SMP => Error::ImageSmpMissing { looked },
            _ => Error::ImageMissing { looked },
        })
    }

    fn check(path: PathBuf, file: File) -> Result<Image> {
        let bad = |why| Error::ImageBad {
            path: path.clone(),
            why,
        };
        let mut head = Vec::new();
        (&file)
            .take(HEAD_MAX)
            .read_to_end(&mut head)
            .map_err(unreadable(&path))?;
        let elf = FileHeader64::<LittleEndian>::parse(&*head)
            .map_err(|_| bad("it is no 64-bit ELF file"))?;
        let endian = elf.endian().map_err(|_| bad("it is not little-endian"))?;
        if elf.e_machine(endian) != EM_X86_64 {
            return Err(bad("it is for another machine"));
        }
        if !matches!(elf.e_type(endian), ET_DYN | ET_EXEC) {
            return Err(bad("it is not linked"));
        }
        let headers = elf
            .program_headers(endian, &*head)
            .map_err(|_| bad("its program headers are cut off"))?;
        let mut segments = Vec::new();
        let mut end = 0;
        for header in headers.iter().filter(|h| h.p_type(endian) == PT_LOAD) {
            let address = header.p_vaddr(endian);
            let memory = header.p_memsz(endian);
            let len = header.p_filesz(endian);
            let top = address.checked_add(memory);
            if len > memory || top.is_none_or(|top| top > RING3_REGION_MAX) {
                return Err(bad("a segment lies outside the region"));
            }
            end = end.max(address + memory);
            segments.push(Segment {
                offset: header.p_offset(endian),
                address,
                len,
            });
        }
        let first = segments
            .iter()
            .find(|s| s.address == 0)
            .ok_or_else(|| bad("nothing is linked at address 0"))?;

        let mut bytes = vec![0; offset_of!(ring3_region, base)];
        file.read_exact_at(&mut bytes, first.offset)
            .map_err(unreadable(&path))?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if word(offset_of!(ring3_region, magic)) != RING3_MAGIC {
            return Err(bad("it has no ring3 header"));
        }
        let abi = word(offset_of!(ring3_region, abi)) as u32;
        if abi != RING3_ABI {
            return Err(Error::ImageVersion {
                path,
                found: abi,
                wanted: RING3_ABI,
            });
        }
        let size = word(offset_of!(ring3_region, image_size));
        let text =
            word(offset_of!(ring3_region, text_start))..word(offset_of!(ring3_region, text_end));
        let boot = word(offset_of!(ring3_region, boot));
        let enter = word(offset_of!(ring3_region, enter));
        let fixup = word(offset_of!(ring3_region, fixup));
        if size < end || size % PAGE != 0 || size > RING3_REGION_MAX {
            return Err(bad("its size does not fit its segments"));
        }
        if text.start % PAGE != 0 || text.end % PAGE != 0 || text.end > size || text.is_empty() {
            return Err(bad("its text is not where it says"));
        }
        if [boot, enter, fixup].iter().any(|at| !text.contains(at)) {
            return Err(bad("its entry points lie outside its text"));
        }
        Ok(Image {
            flavour: word(offset_of!(ring3_region, abi)).wrapping_shr(32) as u32,
            version: c_string(&bytes[offset_of!(ring3_region, version)..]),
            path,
            file,
            segments,
            size,
            text,
            boot,
            enter,
            fixup,
        })
    }
}

/// Beside the command, then where a package would put it.
fn default_places(name: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(dir) = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()))
    {
        places.push(dir.join(name));
        places.push(dir.join("../lib/ring3").join(name));
    }
    places.push(Path::new("/usr/lib/ring3").join(name));
    places
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |why| Error::ImageUnreadable {
        path,
        why: why.into(),
    }
}

/// Text up to the first NUL.
pub(crate) fn c_string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
