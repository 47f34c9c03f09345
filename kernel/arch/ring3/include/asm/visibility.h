/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forced into every C file: declarations too are hidden, so that an extern is
 * reached PC-relative and never through a GOT, which would hold absolute
 * addresses on the hot path.
 */
#pragma GCC visibility push(hidden)
