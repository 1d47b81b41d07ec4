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
noblacklist /a
noblacklist /bin
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /out
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
noblacklist /w
blacklist /*
blacklist /usr/*
blacklist /usr/local/*
read-only /
read-only /usr
read-only /etc
read-only /a
read-write /out
read-only /w
read-only /out/.Rprofile
read-only /out/.agents
read-only /out/.aider.conf.yml
read-only /out/.amazonq
read-only /out/.aws/config
read-only /out/.bash_aliases
read-only /out/.bash_login
read-only /out/.bash_logout
read-only /out/.bash_profile
read-only /out/.bashrc
read-only /out/.cargo/bin
read-only /out/.cargo/config.toml
read-only /out/.claude
read-only /out/.claude.json
read-only /out/.claude/settings.json
read-only /out/.claude/settings.local.json
read-only /out/.codex
read-only /out/.codex/config.toml
read-only /out/.codex/hooks.json
read-only /out/.config/Code/User
read-only /out/.config/autostart
read-only /out/.config/environment.d
read-only /out/.config/fish
read-only /out/.config/git
read-only /out/.config/nvim
read-only /out/.config/opencode
read-only /out/.config/systemd
read-only /out/.config/zed
read-only /out/.continue
read-only /out/.copilot
read-only /out/.cshrc
read-only /out/.cursor
read-only /out/.cursor/hooks.json
read-only /out/.docker/config.json
read-only /out/.emacs
read-only /out/.emacs.d
read-only /out/.envrc
read-only /out/.gdbinit
read-only /out/.gemini
read-only /out/.gemini/settings.json
read-only /out/.git/branches
read-only /out/.git/commondir
read-only /out/.git/config
read-only /out/.git/config.worktree
read-only /out/.git/gitdir
read-only /out/.git/hooks
read-only /out/.git/info/attributes
read-only /out/.git/objects/info/alternates
read-only /out/.git/objects/info/http-alternates
read-only /out/.git/remotes
read-only /out/.gitconfig
read-only /out/.gitmodules
read-only /out/.gnupg
read-only /out/.husky
read-only /out/.idea
read-only /out/.inputrc
read-only /out/.irbrc
read-only /out/.junie
read-only /out/.kiro
read-only /out/.kshrc
read-only /out/.kube/config
read-only /out/.lldbinit
read-only /out/.local/bin
read-only /out/.local/share/applications
read-only /out/.local/share/systemd
read-only /out/.login
read-only /out/.mcp.json
read-only /out/.npmrc
read-only /out/.opencode
read-only /out/.pam_environment
read-only /out/.profile
read-only /out/.psqlrc
read-only /out/.qwen
read-only /out/.roo
read-only /out/.screenrc
read-only /out/.sqliterc
read-only /out/.ssh
read-only /out/.tcshrc
read-only /out/.tmux.conf
read-only /out/.vim
read-only /out/.vimrc
read-only /out/.vscode/mcp.json
read-only /out/.vscode/settings.json
read-only /out/.vscode/tasks.json
read-only /out/.windsurf
read-only /out/.xinitrc
read-only /out/.xprofile
read-only /out/.xsession
read-only /out/.xsessionrc
read-only /out/.zed
read-only /out/.zlogin
read-only /out/.zlogout
read-only /out/.zprofile
read-only /out/.zshenv
read-only /out/.zshrc
read-only /out/opencode.json
read-only /out/opencode.jsonc
