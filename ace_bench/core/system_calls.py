"""A filter that allows only the system calls that a process needs (seccomp, Linux on x86_64 and aarch64).

Landlock restricts access to files, but not to sockets in the file system, processes, signals, permissions, keyrings or
shared memory. This filter refuses every call that is not listed here, above all new processes, programs and sockets. A
process that cannot start others has one address space, which a resource limit bounds, and killing it ends everything.

This module uses only the standard library, because processes of other interpreters import it too: pyseccomp would
have to be installed for each of them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ALLOWED = (
    # Files and folders; Landlock restricts which ones.
    """
    read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
    preadv2:327:286 pwritev2:328:287 close:3:57 close_range:436:436 lseek:8:62 stat:4:- fstat:5:80 lstat:6:-
    newfstatat:262:79 statx:332:291 statfs:137:43 fstatfs:138:44 access:21:- faccessat:269:48 faccessat2:439:439
    readlink:89:- readlinkat:267:78 getdents:78:- getdents64:217:61 getcwd:79:17 chdir:80:49 fchdir:81:50
    umask:95:166 mkdir:83:- mkdirat:258:34 rmdir:84:- unlink:87:- unlinkat:263:35 rename:82:- renameat:264:38
    renameat2:316:276 link:86:- linkat:265:37 symlink:88:- symlinkat:266:36 ftruncate:77:46 fallocate:285:47
    fadvise64:221:223 fsync:74:82 fdatasync:75:83 sendfile:40:71 copy_file_range:326:285 dup:32:23 dup2:33:-
    dup3:292:24
    """,
    # Waiting, and communication over what is already open.
    """
    pipe:22:- pipe2:293:59 eventfd:284:- eventfd2:290:19 poll:7:- ppoll:271:73 select:23:- pselect6:270:72
    epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22
    epoll_pwait2:441:441 timerfd_create:283:85 timerfd_settime:286:86 timerfd_gettime:287:87 listen:50:201
    accept:43:202 accept4:288:242 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212 shutdown:48:210
    getsockname:51:204 getpeername:52:205 getsockopt:55:209
    """,
    # Memory and threads of this process
    """
    mmap:9:222 munmap:11:215 mprotect:10:226 mremap:25:216 madvise:28:233 brk:12:214 msync:26:227
    set_robust_list:273:99 rseq:334:293 set_tid_address:218:96 futex:202:98
    futex_waitv:449:449 sched_yield:24:124 exit:60:93 exit_group:231:94 wait4:61:260 waitid:247:95
    restart_syscall:219:128
    """,
    # Signals to itself, and time
    """
    rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigtimedwait:128:137 rt_sigpending:127:136
    rt_sigsuspend:130:133 sigaltstack:131:132 pause:34:- alarm:37:- setitimer:38:103 getitimer:36:102
    nanosleep:35:101 clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169
    time:201:- times:100:153
    """,
    # Information about itself and the system
    """
    getpid:39:172 gettid:186:178 getppid:110:173 getpgrp:111:- getpgid:121:155 getsid:124:156 getuid:102:174
    geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158
    getrlimit:97:163 getrusage:98:165 getpriority:140:141 sched_getaffinity:204:123 sched_getparam:143:121
    sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 getcpu:309:168
    sysinfo:99:179 uname:63:160 getrandom:318:278
    """,
)
"""Name, number on x86_64 and number on aarch64 ("-": there is none), as in the kernel's own tables."""

_PRETENDED = """
    chmod:90:- fchmod:91:52 fchmodat:268:53 utime:132:- utimes:235:- futimesat:261:- utimensat:280:88
"""
"""Calls that do nothing and report success, because libraries copy files with their modes and times.

Landlock does not restrict them, and they would change files outside the process's folder.
"""

_UNSUPPORTED = """
    setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7 getxattr:191:8 lgetxattr:192:9 fgetxattr:193:10 listxattr:194:11
    llistxattr:195:12 flistxattr:196:13 removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16
"""
"""Calls answered as by a file system without extended attributes, which libraries expect."""

_OPEN, _OPENAT = (2, None), (257, 56)
_CLONE = (56, 220)
_FCNTL, _IOCTL, _PRCTL = (72, 25), (16, 29), (157, 167)
_KILL, _TGKILL = (62, 129), (234, 131)
_PRLIMIT, _SOCKETPAIR = (302, 261), (53, 199)

_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_OPEN_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_TRUNC | os.O_WRONLY, os.O_TRUNC | os.O_RDWR)
"""Without read-only with truncation: before version 3, Landlock treats that as reading."""
_FCNTLS = (*range(8), 36, 37, 38, 1030, 1032)
"""Copies, flags and locks; not signals to other processes, leases and notifications."""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
_PRCTLS = (15, 16)
"""PR_SET_NAME and PR_GET_NAME, as threads use them."""
_SIGNALS = tuple(number for number in range(65) if number != 9)
"""All but SIGKILL: a process that dies of SIGKILL was then killed by another process."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column in the tables, and the kernel's name for the machine (AUDIT_ARCH)."""
_FIRST_NEW = 424
"""From this number on, calls have equal numbers on all machines; libraries fall back to older calls on ENOSYS."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _FILTER = 22, 2

_ANSWERS = (
    *((table, _ALLOW) for table in _ALLOWED),
    (_PRETENDED, _REFUSE | 0),
    (_UNSUPPORTED, _REFUSE | errno.ENOTSUP),
)

_Instruction = tuple[int, int, int, int]
_Number = tuple[int | None, int | None]


@dataclass(frozen=True)
class _Only:
    """Allows a call if 32 masked bits of an argument are one of ``values``; ``high`` selects the upper half."""

    argument: int
    values: Sequence[int]
    mask: int = 0xFFFFFFFF
    high: bool = False


def restrict_calls() -> bool:
    """Restrict this process and its later threads for good; return whether kernel and machine support it.

    The process must have one thread, and must not be able to gain privileges (PR_SET_NO_NEW_PRIVS).
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        return False
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(machine, os.getpid()))
    code = ctypes.create_string_buffer(program, len(program))
    about = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER, about, 0, 0) == 0)


def _conditional(pid: int) -> dict[_Number, tuple[_Only, ...]]:
    modes = os.O_ACCMODE | os.O_TRUNC
    return {
        _OPENAT: (_Only(2, _OPEN_MODES, modes),),
        _OPEN: (_Only(1, _OPEN_MODES, modes),),
        _CLONE: (_Only(0, (_CLONE_THREAD,), _CLONE_THREAD | _CLONE_NAMESPACES),),
        _FCNTL: (_Only(1, _FCNTLS),),
        _IOCTL: (_Only(1, _IOCTLS),),
        _PRCTL: (_Only(0, _PRCTLS),),
        _KILL: (_Only(0, (pid,)), _Only(1, _SIGNALS)),
        _TGKILL: (_Only(0, (pid,)), _Only(2, _SIGNALS)),
        _PRLIMIT: (_Only(0, (0, pid)), _Only(2, (0,)), _Only(2, (0,), high=True)),  # read only
        _SOCKETPAIR: (_Only(0, (1,)), _Only(1, (1,), 0xF)),  # two connected ends: datagrams could go elsewhere
    }


def _program(machine: str, pid: int) -> list[_Instruction]:
    column, name = _MACHINES[machine]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, name),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for numbers, conditions in _conditional(pid).items():
        if (number := numbers[column]) is not None:
            checks = [instruction for condition in conditions for instruction in _check(condition)]
            program += [(_EQUAL, 0, len(checks) + 1, number), *checks, (_RETURN, 0, 0, _ALLOW)]
    for table, answer in _ANSWERS:
        for number in _list_numbers(table, column):
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    return [
        *program,
        (_AT_LEAST, 0, 1, _FIRST_NEW),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
    ]


def _check(condition: _Only) -> Iterator[_Instruction]:
    """Yield instructions that continue after themselves if the condition holds and refuse the call otherwise."""
    yield _LOAD, 0, 0, _ARGUMENTS_AT + 8 * condition.argument + 4 * condition.high
    yield _AND, 0, 0, condition.mask
    left = len(condition.values)
    for value in condition.values:
        yield _EQUAL, left, 0, value
        left -= 1
    yield _RETURN, 0, 0, _REFUSE | errno.EPERM


def _list_numbers(table: str, column: int) -> Iterator[int]:
    for entry in table.split():
        number = entry.split(":")[1 + column]
        if number != "-":
            yield int(number)
