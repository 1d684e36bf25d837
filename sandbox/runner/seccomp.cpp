// A deny list: agents run arbitrary toolchains, so everything is allowed but what reaches the
// kernel's rarely used or privileged parts. Foreign ABIs (int 0x80, x32) kill the process.

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

constexpr std::uint64_t kLow32 = 0xffffffffULL;

const int kDenied[] = {
    // keyrings, kernel programs, tracing of others, asynchronous rings
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(lookup_dcookie),
    // mounts and namespaces
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(fanotify_init),
    // the machine itself
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(syslog),
    SCMP_SYS(vhangup),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(clock_settime),
    SCMP_SYS(settimeofday),
    SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime),
#ifdef __x86_64__
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(modify_ldt),
#endif
};

int deny(scmp_filter_ctx filter, int error, int call) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), call, 0);
}

int deny_if(scmp_filter_ctx filter, int error, int call, scmp_arg_cmp condition) {
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), call, 1,
                            condition);
}

int deny_sockets(scmp_filter_ctx filter, bool unix_only) {
    const auto family = [](scmp_compare op, std::uint64_t value) {
        return scmp_arg_cmp{0, op, value, 0};
    };
    // 64-bit comparisons: a family with high bits set is "greater" and refused as well.
    const int last = unix_only ? AF_UNIX : AF_INET6;
    int rc = deny_if(filter, EAFNOSUPPORT, SCMP_SYS(socket),
                     family(SCMP_CMP_GT, static_cast<std::uint64_t>(last)));
    for (int other = AF_INET + 1; rc == 0 && !unix_only && other < AF_INET6; ++other)
        rc = deny_if(filter, EAFNOSUPPORT, SCMP_SYS(socket),
                     family(SCMP_CMP_EQ, static_cast<std::uint64_t>(other)));
    return rc;
}

int deny_new_processes(scmp_filter_ctx filter) {
    int rc = deny(filter, EAGAIN, SCMP_SYS(clone));
    if (rc == 0) rc = deny(filter, EAGAIN, SCMP_SYS(fork));
    if (rc == 0) rc = deny(filter, EAGAIN, SCMP_SYS(vfork));
    return rc;
}

int deny_special(scmp_filter_ctx filter, const Plan& plan) {
    // glibc falls back from clone3 to clone, whose flags a filter can see.
    int rc = deny(filter, ENOSYS, SCMP_SYS(clone3));
    if (rc == 0 && plan.deny_threads != 0) rc = deny_new_processes(filter);
    if (rc == 0 && plan.deny_threads == 0)
        rc = deny_if(filter, EPERM, SCMP_SYS(clone),
                     {0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER});
    for (const std::uint64_t request : {std::uint64_t{TIOCSTI}, std::uint64_t{TIOCLINUX}})
        if (rc == 0)
            rc = deny_if(filter, EPERM, SCMP_SYS(ioctl), {1, SCMP_CMP_MASKED_EQ, kLow32, request});
    // Init has the command's uid, so it could be slowed or limited to death.
    for (const int call :
         {SCMP_SYS(prlimit64), SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler),
          SCMP_SYS(sched_setparam), SCMP_SYS(sched_setattr)})
        if (rc == 0) rc = deny_if(filter, EPERM, call, {0, SCMP_CMP_MASKED_EQ, kLow32, 1});
    if (rc == 0) rc = deny_sockets(filter, plan.isolate == 0);
    if (rc == 0 && plan.allow_ptrace == 0) rc = deny(filter, EPERM, SCMP_SYS(ptrace));
    return rc;
}

}  // namespace

int install_seccomp(const Plan& plan) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == nullptr) return ENOMEM;
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (const int call : kDenied)
        if (rc == 0) rc = deny(filter, EPERM, call);
    if (rc == 0) rc = deny_special(filter, plan);
    if (rc == 0) rc = seccomp_load(filter);
    seccomp_release(filter);
    return -rc;
}

}  // namespace skein::sandbox::runner
