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
whitelist /tmp/x
blacklist /sys
read-only /
read-only /usr
read-only /etc
read-write /tmp/x
read-only /tmp/x/.Rprofile
read-only /tmp/x/.agents
read-only /tmp/x/.aider.conf.yml
read-only /tmp/x/.amazonq
read-only /tmp/x/.aws/config
read-only /tmp/x/.bash_aliases
read-only /tmp/x/.bash_login
read-only /tmp/x/.bash_logout
read-only /tmp/x/.bash_profile
read-only /tmp/x/.bashrc
read-only /tmp/x/.cargo/bin
read-only /tmp/x/.cargo/config.toml
read-only /tmp/x/.claude
read-only /tmp/x/.claude.json
read-only /tmp/x/.claude/settings.json
read-only /tmp/x/.claude/settings.local.json
read-only /tmp/x/.codex
read-only /tmp/x/.codex/config.toml
read-only /tmp/x/.codex/hooks.json
read-only /tmp/x/.config/Code/User
read-only /tmp/x/.config/autostart
read-only /tmp/x/.config/environment.d
read-only /tmp/x/.config/fish
read-only /tmp/x/.config/git
read-only /tmp/x/.config/nvim
read-only /tmp/x/.config/opencode
read-only /tmp/x/.config/systemd
read-only /tmp/x/.config/zed
read-only /tmp/x/.continue
read-only /tmp/x/.copilot
read-only /tmp/x/.cshrc
read-only /tmp/x/.cursor
read-only /tmp/x/.cursor/hooks.json
read-only /tmp/x/.docker/config.json
read-only /tmp/x/.emacs
read-only /tmp/x/.emacs.d
read-only /tmp/x/.envrc
read-only /tmp/x/.gdbinit
read-only /tmp/x/.gemini
read-only /tmp/x/.gemini/settings.json
read-only /tmp/x/.git/branches
read-only /tmp/x/.git/commondir
read-only /tmp/x/.git/config
read-only /tmp/x/.git/config.worktree
read-only /tmp/x/.git/gitdir
read-only /tmp/x/.git/hooks
read-only /tmp/x/.git/info/attributes
read-only /tmp/x/.git/objects/info/alternates
read-only /tmp/x/.git/objects/info/http-alternates
read-only /tmp/x/.git/remotes
read-only /tmp/x/.gitconfig
read-only /tmp/x/.gitmodules
read-only /tmp/x/.gnupg
read-only /tmp/x/.husky
read-only /tmp/x/.idea
read-only /tmp/x/.inputrc
read-only /tmp/x/.irbrc
read-only /tmp/x/.junie
read-only /tmp/x/.kiro
read-only /tmp/x/.kshrc
read-only /tmp/x/.kube/config
read-only /tmp/x/.lldbinit
read-only /tmp/x/.local/bin
read-only /tmp/x/.local/share/applications
read-only /tmp/x/.local/share/systemd
read-only /tmp/x/.login
read-only /tmp/x/.mcp.json
read-only /tmp/x/.npmrc
read-only /tmp/x/.opencode
read-only /tmp/x/.pam_environment
read-only /tmp/x/.profile
read-only /tmp/x/.psqlrc
read-only /tmp/x/.qwen
read-only /tmp/x/.roo
read-only /tmp/x/.screenrc
read-only /tmp/x/.sqliterc
read-only /tmp/x/.ssh
read-only /tmp/x/.tcshrc
read-only /tmp/x/.tmux.conf
read-only /tmp/x/.vim
read-only /tmp/x/.vimrc
read-only /tmp/x/.vscode/mcp.json
read-only /tmp/x/.vscode/settings.json
read-only /tmp/x/.vscode/tasks.json
read-only /tmp/x/.windsurf
read-only /tmp/x/.xinitrc
read-only /tmp/x/.xprofile
read-only /tmp/x/.xsession
read-only /tmp/x/.xsessionrc
read-only /tmp/x/.zed
read-only /tmp/x/.zlogin
read-only /tmp/x/.zlogout
read-only /tmp/x/.zprofile
read-only /tmp/x/.zshenv
read-only /tmp/x/.zshrc
read-only /tmp/x/opencode.json
read-only /tmp/x/opencode.jsonc
