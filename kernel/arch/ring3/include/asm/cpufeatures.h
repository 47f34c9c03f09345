/* SPDX-License-Identifier: GPL-2.0 */
/* Empty: what the shared x86 headers include, nothing of it is needed. */
