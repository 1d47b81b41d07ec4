#!/bin/sh
# Starts the command, or the one given as arguments, in its sandbox.
here=$(cd -- "$(dirname -- "$0")" && pwd) || exit
exec 4<&0
{
  [ -z "${API_TOKEN+x}" ] || printf '%s\0' --setenv API_TOKEN "$API_TOKEN"
  [ -z "${LANG+x}" ] || printf '%s\0' --setenv LANG "$LANG"
} | bwrap \
  --ro-bind "$here/etc/passwd" /etc/passwd \
  --ro-bind "$here/etc/group" /etc/group \
  --ro-bind "$here/etc/hosts" /etc/hosts \
  --ro-bind "$here/etc/nsswitch.conf" /etc/nsswitch.conf \
  --ro-bind "$here/etc/resolv.conf" /etc/resolv.conf \
  --ro-bind "$here/etc/machine-id" /etc/machine-id \
  --unshare-user \
  --unshare-pid \
  --unshare-ipc \
  --unshare-uts \
  --unshare-net \
  --unshare-cgroup-try \
  --die-with-parent \
  --new-session \
  --cap-drop ALL \
  --disable-userns \
  --clearenv \
  --setenv PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  --setenv HOME /tmp \
  --setenv LANG C.UTF-8 \
  --ro-bind-try /usr/lib /usr/lib \
  --ro-bind-try /usr/lib32 /usr/lib32 \
  --ro-bind-try /usr/lib64 /usr/lib64 \
  --ro-bind-try /usr/libx32 /usr/libx32 \
  --ro-bind-try /usr/local/lib /usr/local/lib \
  --ro-bind-try /lib /lib \
  --ro-bind-try /lib32 /lib32 \
  --ro-bind-try /lib64 /lib64 \
  --ro-bind-try /libx32 /libx32 \
  --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache \
  --ro-bind-try /etc/ld.so.conf /etc/ld.so.conf \
  --ro-bind-try /etc/ld.so.conf.d /etc/ld.so.conf.d \
  --ro-bind-try /usr/bin /usr/bin \
  --ro-bind-try /usr/sbin /usr/sbin \
  --ro-bind-try /usr/libexec /usr/libexec \
  --ro-bind-try /usr/local/bin /usr/local/bin \
  --ro-bind-try /usr/local/sbin /usr/local/sbin \
  --ro-bind-try /bin /bin \
  --ro-bind-try /sbin /sbin \
  --ro-bind-try /etc/alternatives /etc/alternatives \
  --ro-bind-try /usr/share /usr/share \
  --ro-bind-try /usr/local/share /usr/local/share \
  --ro-bind-try /etc/locale.alias /etc/locale.alias \
  --ro-bind-try /etc/localtime /etc/localtime \
  --ro-bind-try /etc/timezone /etc/timezone \
  --ro-bind-try /etc/ssl/certs /etc/ssl/certs \
  --ro-bind-try /etc/ssl/openssl.cnf /etc/ssl/openssl.cnf \
  --ro-bind-try /etc/ca-certificates /etc/ca-certificates \
  --ro-bind-try /etc/pki/tls/certs /etc/pki/tls/certs \
  --ro-bind-try /etc/pki/tls/openssl.cnf /etc/pki/tls/openssl.cnf \
  --ro-bind-try /etc/pki/ca-trust/extracted /etc/pki/ca-trust/extracted \
  --ro-bind-try /etc/protocols /etc/protocols \
  --ro-bind-try /etc/services /etc/services \
  --ro-bind-try /etc/mime.types /etc/mime.types \
  --ro-bind-try /etc/inputrc /etc/inputrc \
  --ro-bind-try /etc/terminfo /etc/terminfo \
  --dev /dev \
  --proc /proc \
  --ro-bind-try /proc/sys /proc/sys \
  --ro-bind-try /proc/fs /proc/fs \
  --ro-bind-try /proc/sysrq-trigger /proc/sysrq-trigger \
  --perms 1777 \
  --tmpfs /tmp \
  --remount-ro / \
  --args 5 \
  -- server "$@" 5<&0 0<&4 4<&-
