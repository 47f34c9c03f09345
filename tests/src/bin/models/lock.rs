// SPDX-License-Identifier: GPL-2.0
//! What a step makes of an owner word or a thread's word: include/ring3_lock.h, as tests/build.rs translates it.
#![allow(unused_parens, dead_code)]

include!(concat!(env!("OUT_DIR"), "/lock.rs"));
