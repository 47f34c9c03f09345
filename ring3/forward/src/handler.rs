// SPDX-License-Identifier: GPL-2.0
//! The user's shared object: include/ring3_forward.h. Unsafe leaf.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cut;
use crate::error::{Error, Result};
use crate::leaf::Name;

const ABI: u32 = 1;

/// struct ring3_packet
#[repr(C)]
struct Packet {
    data: *mut u8,
    len: u32,
    room: u32,
    stream: u64,
    back: u32,
    from_len: u32,
    from: *const c_void,
}

/// struct ring3_handler
#[repr(C)]
struct Table {
    abi: u32,
    open: Option<unsafe extern "C" fn(*const c_char, u32, *mut *mut c_void) -> i32>,
    packet: Option<cut::Packet>,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// One that is open.
#[derive(Debug)]
pub struct Handler {
    packet: cut::Packet,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
    state: *mut c_void,
}

// SAFETY: the handler's functions are called by whoever has this value, one thread at a time: its header promises that.
unsafe impl Send for Handler {}

/// What is known of a packet beside its bytes.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// 0: a datagram.
    pub stream: u64,
    pub is_back: bool,
    pub from: &'a Name,
}

/// What the handler made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// So many bytes go to these targets.
    To { targets: u64, len: usize },
    /// The call was cut off, or the handler broke its rules.
    Cut,
}

impl Handler {
    pub fn open(path: &Path, words: &str, targets: u32) -> Result<Handler> {
        let fail = |why: String| Error::Load {
            path: path.to_owned(),
            why,
        };
        // Without a slash the loader would search its own folders.
        let file: PathBuf = match path.as_os_str().as_bytes().contains(&b'/') {
            true => path.to_owned(),
            false => Path::new(".").join(path),
        };
        let name =
            CString::new(file.as_os_str().as_bytes()).map_err(|why| fail(why.to_string()))?;
        let words = CString::new(words).map_err(|why| fail(why.to_string()))?;
        // SAFETY: loading runs the object's constructors, which the user asked for. The object is never unloaded, so what
        // it exports lives for ever.
        let table = unsafe {
            let object = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if object.is_null() {
                return Err(fail(said()));
            }
            let table = libc::dlsym(object, c"ring3_handler".as_ptr()).cast::<Table>();
            table
                .as_ref()
                .ok_or_else(|| fail("it has no symbol ring3_handler".into()))?
        };
        if table.abi != ABI {
            let why = format!(
                "it is made for version {} of ring3_forward.h: compile it anew",
                table.abi
            );
            return Err(fail(why));
        }
        let packet = table
            .packet
            .ok_or_else(|| fail("it has no packet()".into()))?;
        let mut state = std::ptr::null_mut();
        if let Some(open) = table.open {
            // SAFETY: as the header has it; words live until it returns.
            let status = unsafe { open(words.as_ptr(), targets, &raw mut state) };
            if status != 0 {
                return Err(Error::Refused {
                    path: path.to_owned(),
                    status,
                });
            }
        }
        Ok(Handler {
            packet,
            close: table.close,
            state,
        })
    }

    /// `bytes` is all the room there is; the first `len` are the packet.
    pub fn call(&mut self, bytes: &mut [u8], len: usize, about: About<'_>) -> Verdict {
        let (from, from_len) = about.from.raw();
        let mut packet = Packet {
            data: bytes.as_mut_ptr(),
            len: len as u32,
            room: bytes.len() as u32,
            stream: about.stream,
            back: about.is_back.into(),
            from_len,
            from,
        };
        // SAFETY: the header's contract: the handler uses the room at data, and the packet during the call. After a call
        // that was left neither is used, and the handler not called again (watchdog::Caller).
        let came = unsafe { cut::call(self.packet, self.state, (&raw mut packet).cast()) };
        match came {
            Some(targets) if packet.len <= packet.room => Verdict::To {
                targets,
                len: packet.len as usize,
            },
            _ => Verdict::Cut,
        }
    }

    /// Without an object.
    #[cfg(test)]
    pub fn of(packet: cut::Packet) -> Handler {
        Handler {
            packet,
            close: None,
            state: std::ptr::null_mut(),
        }
    }

    pub fn close(self) {
        if let Some(close) = self.close {
            // SAFETY: once, after the last packet.
            unsafe { close(self.state) };
        }
    }
}

/// What the loader says.
fn said() -> String {
    // SAFETY: the text is the loader's until its next call by this thread.
    unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => "the loader does not say why".into(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

const _: () = assert!(std::mem::size_of::<Packet>() == 40);
const _: () = assert!(std::mem::size_of::<Table>() == 32);
