/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PERCPU_H
#define _ASM_RING3_PERCPU_H

#ifndef __ASSEMBLY__
#include <asm/stack.h>

#define __my_cpu_offset		(ring3_stack()->percpu)

/*
 * Kernel code polls for interrupts (DESIGN rule 3), so none comes between the read and the write of this vCPU's
 * variable: nothing has to be disabled.
 */
#define this_cpu_read_1(pcp)			raw_cpu_generic_read(pcp)
#define this_cpu_write_1(pcp, val)		raw_cpu_generic_to_op(pcp, val, =)
#define this_cpu_add_1(pcp, val)		raw_cpu_generic_to_op(pcp, val, +=)
#define this_cpu_and_1(pcp, val)		raw_cpu_generic_to_op(pcp, val, &=)
#define this_cpu_or_1(pcp, val)		raw_cpu_generic_to_op(pcp, val, |=)
#define this_cpu_add_return_1(pcp, val)		raw_cpu_generic_add_return(pcp, val)
#define this_cpu_xchg_1(pcp, nval)		raw_cpu_generic_xchg(pcp, nval)
#define this_cpu_try_cmpxchg_1(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg_1(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)

#define this_cpu_read_2(pcp)			raw_cpu_generic_read(pcp)
#define this_cpu_write_2(pcp, val)		raw_cpu_generic_to_op(pcp, val, =)
#define this_cpu_add_2(pcp, val)		raw_cpu_generic_to_op(pcp, val, +=)
#define this_cpu_and_2(pcp, val)		raw_cpu_generic_to_op(pcp, val, &=)
#define this_cpu_or_2(pcp, val)		raw_cpu_generic_to_op(pcp, val, |=)
#define this_cpu_add_return_2(pcp, val)		raw_cpu_generic_add_return(pcp, val)
#define this_cpu_xchg_2(pcp, nval)		raw_cpu_generic_xchg(pcp, nval)
#define this_cpu_try_cmpxchg_2(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg_2(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)

#define this_cpu_read_4(pcp)			raw_cpu_generic_read(pcp)
#define this_cpu_write_4(pcp, val)		raw_cpu_generic_to_op(pcp, val, =)
#define this_cpu_add_4(pcp, val)		raw_cpu_generic_to_op(pcp, val, +=)
#define this_cpu_and_4(pcp, val)		raw_cpu_generic_to_op(pcp, val, &=)
#define this_cpu_or_4(pcp, val)		raw_cpu_generic_to_op(pcp, val, |=)
#define this_cpu_add_return_4(pcp, val)		raw_cpu_generic_add_return(pcp, val)
#define this_cpu_xchg_4(pcp, nval)		raw_cpu_generic_xchg(pcp, nval)
#define this_cpu_try_cmpxchg_4(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg_4(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)

#define this_cpu_read_8(pcp)			raw_cpu_generic_read(pcp)
#define this_cpu_write_8(pcp, val)		raw_cpu_generic_to_op(pcp, val, =)
#define this_cpu_add_8(pcp, val)		raw_cpu_generic_to_op(pcp, val, +=)
#define this_cpu_and_8(pcp, val)		raw_cpu_generic_to_op(pcp, val, &=)
#define this_cpu_or_8(pcp, val)		raw_cpu_generic_to_op(pcp, val, |=)
#define this_cpu_add_return_8(pcp, val)		raw_cpu_generic_add_return(pcp, val)
#define this_cpu_xchg_8(pcp, nval)		raw_cpu_generic_xchg(pcp, nval)
#define this_cpu_try_cmpxchg_8(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg_8(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)

#define this_cpu_try_cmpxchg64(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg64(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)
#define this_cpu_try_cmpxchg128(pcp, ovalp, nval)	raw_cpu_generic_try_cmpxchg(pcp, ovalp, nval)
#define this_cpu_cmpxchg128(pcp, oval, nval)	raw_cpu_generic_cmpxchg(pcp, oval, nval)
#endif

#include <asm-generic/percpu.h>

#endif
