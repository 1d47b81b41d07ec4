deterministic-exit-code
deterministic-shutdown
caps.drop all
nonewprivs
noroot
nogroups
net none
ipc-namespace
machine-id
private-dev
nosound
no3d
nodvd
notv
nou2f
novideo
noinput
dbus-user none
seccomp
restrict-namespaces
noblacklist /dev
noblacklist /proc
whitelist /run/.bailiwick
protocol inet,inet6
dbus-system none
whitelist /tmp/.bailiwick
whitelist /etc/.bailiwick
whitelist /etc/ld.so.cache
whitelist /etc/ld.so.conf
whitelist /etc/ld.so.conf.d
whitelist /etc/alternatives
whitelist /etc/locale.alias
whitelist /etc/localtime
whitelist /etc/timezone
whitelist /etc/ssl/certs
whitelist /etc/ssl/openssl.cnf
whitelist /etc/ca-certificates
whitelist /etc/pki/tls/certs
whitelist /etc/pki/tls/openssl.cnf
whitelist /etc/pki/ca-trust/extracted
whitelist /etc/protocols
whitelist /etc/services
whitelist /etc/mime.types
whitelist /etc/inputrc
whitelist /etc/terminfo
noblacklist /bin
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /run
noblacklist /sbin
noblacklist /tmp
noblacklist /usr
noblacklist /usr/bin
noblacklist /usr/lib
noblacklist /usr/lib32
noblacklist /usr/lib64
noblacklist /usr/libexec
noblacklist /usr/libx32
noblacklist /usr/local
noblacklist /usr/local/bin
noblacklist /usr/local/lib
noblacklist /usr/local/sbin
noblacklist /usr/local/share
noblacklist /usr/sbin
noblacklist /usr/share
blacklist /*
blacklist /usr/*
blacklist /usr/local/*
read-only /
read-only /usr
read-only /etc
