/* SPDX-License-Identifier: GPL-2.0 */
#include_next <linux/virtio_net.h>
#include "../../kernel.h"
