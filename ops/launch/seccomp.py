"""The seccomp profile of pods with browsers: Chromium's sandbox makes namespaces, which the runtimes' own profiles refuse.

All is permitted but what no browser needs and what has let processes out of containers before.
"""

import json

_REFUSED = (
    # The kernel and its modules.
    *("bpf", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module", "query_module"),
    *("get_kernel_syms", "nfsservctl", "reboot", "syslog", "_sysctl", "sysfs", "lookup_dcookie", "uselib", "ustat", "vm86"),
    *("vm86old", "iopl", "ioperm", "perf_event_open", "userfaultfd"),
    # Mounts and other file systems; a new root is set by chroot alone.
    *("mount", "mount_setattr", "umount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("pivot_root", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "name_to_handle_at", "open_by_handle_at"),
    # Others' namespaces, memory and keys.
    *("setns", "process_vm_readv", "process_vm_writev", "kcmp", "add_key", "request_key", "keyctl", "move_pages"),
    *("mbind", "migrate_pages", "set_mempolicy"),
    # The machine's clocks and names.
    *("settimeofday", "stime", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex"),
    *("sethostname", "setdomainname", "vhangup"),
    # Rings of calls pass every profile by.
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
)
_NOT_PERMITTED = 1


def chromium_seccomp() -> str:
    """As Docker and the kubelet read it, JSON."""
    refused = {"names": sorted(_REFUSED), "action": "SCMP_ACT_ERRNO", "errnoRet": _NOT_PERMITTED}
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [refused]}, indent=2) + "\n"
