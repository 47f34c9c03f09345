// SPDX-License-Identifier: GPL-2.0
//! Nodes, by way of the `ring3` command.
