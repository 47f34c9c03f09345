// SPDX-License-Identifier: GPL-2.0
/*
 * patch_context.c - threads at rewritten sites: their faults, and the context that the program may see
 *
 * The program has to see its own code in signal handlers, debuggers and after fork(), not the jumps, slots and
 * stubs that patch.c put in its place.
 */
#include "entry/patch.h"

static int place_of(u64 rip, u32 kind, u32 offset)
{
	u32 i, base = kind * PATCH_SITES, n = READ_ONCE(patch_used[kind]);

	for (i = 0; i < n; i++)
		if (patch_sites[base + i].addr + offset == rip)
			return base + i;
	return -1;
}

enum patch_fault patch_fault(struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	int site;

	site = place_of(sc->rip, 0, 5);
	if (site >= 0 && patch_sites[site].nr == NO_CALL)
		return cpuid_at(patch_sites[site].addr, sc) ? PATCH_RETRY : PATCH_NONE;
	if (site >= 0) {		/* form A: continue at the syscall */
		sc->rip += 2;
		return PATCH_CALL;
	}
	site = place_of(sc->rip, 1, 2);
	if (site >= 0) {		/* form B: continue at the instruction after it */
		sc->rip = patch_sites[site].slot + 7;
		return PATCH_RETRY;
	}
	site = place_of(sc->rip, 0, 0);
	if (site < 0)
		site = place_of(sc->rip, 1, 0);
	if (site >= 0 && (!READ_ONCE(patch_sites[site].done) ||
			  READ_ONCE(*(u8 *)sc->rip) != HLT)) {
		host_syscall0(__NR_sched_yield);
		return PATCH_RETRY;	/* the site is being rewritten */
	}
	return PATCH_NONE;
}

static void leave_slot(struct sigcontext *sc)
{
	u64 slot = patch_slot(sc->rip);
	u32 site;

	if (!slot)
		return;
	for (site = PATCH_SITES; site < PATCH_SITES + READ_ONCE(patch_used[1]); site++) {
		if (patch_sites[site].slot != slot)
			continue;
		if (sc->rip == slot)
			sc->rip = patch_sites[site].addr;
		else if (sc->rip == slot + 7)
			sc->rip = patch_sites[site].addr + 2;
		else
			sc->rip = patch_sites[site].addr + 2 + patch_sites[site].next_len;
		return;
	}
}

static u32 site_of_stub(u64 stub)
{
	return patch_site_of((stub - (u64)patch_stubs) / PATCH_STUB_BYTES);
}

static bool in_stubs(u64 rip)
{
	return rip >= (u64)patch_stubs && rip < (u64)patch_stubs_end;
}

static bool in_own_gs_stubs(u64 rip)
{
	return rip >= (u64)own_gs_stubs && rip < (u64)own_gs_stubs_end;
}

static u32 site_of_own_gs_stub(u64 stub)
{
	return patch_site_of((stub - (u64)own_gs_stubs) / OWN_GS_STUB_BYTES);
}

/* Has a stub trapped because GS is the program's? Then sc becomes that of the program's call. */
bool patch_trapped(struct sigcontext *sc)
{
	u32 site;

	if (!in_own_gs_stubs(sc->rip) || *(u8 *)sc->rip != HLT)
		return false;
	site = site_of_own_gs_stub(sc->rip);
	if (site < PATCH_SITES) {
		sc->rip = patch_sites[site].back;
		sc->rax = patch_sites[site].nr;
	} else {
		sc->rip = patch_sites[site].addr + SYSCALL_BYTES;
	}
	return true;
}

/* Is this the address after one of the calls that stubs make themselves? */
static bool behind_call(const struct patch_layout *l, u32 at)
{
	return at == l->fd_call + SYSCALL_BYTES || at == l->direct_call + SYSCALL_BYTES;
}

/*
 * If context uc is in a stub on the program's own stack, after the call of the gate, or in a near slot, moves it to
 * the equivalent place in the program's own code.
 */
void patch_leave(struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	cpuid_leave(sc);
	if (in_own_gs_stubs(sc->rip))
		sc->rip = patch_sites[site_of_own_gs_stub(sc->rip)].addr;
	if (in_stubs(sc->rip)) {
		u32 site = site_of_stub(sc->rip), kind = site / PATCH_SITES;
		u32 at = (sc->rip - (u64)patch_stubs) % PATCH_STUB_BYTES;
		const struct patch_layout *l = &patch_layout[kind];
		bool called = behind_call(l, at) || at == l->fd_back || at == l->direct_back;

		if ((at >= l->gate_called && at < l->straight) || at >= l->straight_called) {
			sc->rsp = gate_thread()->gate[WORD_SP];
			called = true;
		}
		if (called)
			sc->rip = patch_sites[site].back;
		else if ((at == l->fd_call || at == l->direct_call) && kind == 0 &&
			 (u32)sc->rax != patch_sites[site].nr)
			sc->rip = patch_sites[site].addr + FORM_A_SYSCALL;	/* restart_syscall */
		else if (at < l->entry[CLASS_GATE])
			sc->rip = patch_sites[site].addr;
	}
	leave_slot(sc);
}

/*
 * The host has interrupted a call that a stub makes directly, because of a signal that the program must not see:
 * makes uc repeat the call.
 */
void patch_hide_eintr(struct sigcontext *sc)
{
	u32 site, at;
	const struct patch_layout *l;

	if (!in_stubs(sc->rip) || (long)sc->rax != -EINTR)
		return;
	site = site_of_stub(sc->rip);
	at = (sc->rip - (u64)patch_stubs) % PATCH_STUB_BYTES;
	l = &patch_layout[site / PATCH_SITES];
	if (behind_call(l, at)) {
		sc->rax = patch_sites[site].nr;
		sc->rip -= SYSCALL_BYTES;
	}
}

u64 patch_stub_site(u64 stub)
{
	return patch_sites[site_of_stub(stub)].addr;
}

const u64 *patch_stub_return_word(u64 stub, u32 *add)
{
	u32 site = site_of_stub(stub);

	*add = site < PATCH_SITES ? 0 : 2;
	return site < PATCH_SITES ? &patch_sites[site].back : &patch_sites[site].addr;
}

/* As the program sees it. The byte there may be a trapping one, see patch_fault(). */
u64 patch_stub_return(u64 stub)
{
	u32 add;

	return *patch_stub_return_word(stub, &add) + add;
}
