# The resolver's file is WSL's, and PATH has directories of Windows.
resolver /mnt/wsl/resolv.conf
mkdir -p "/mnt/c/Program Files/Git/cmd" /mnt/c/Windows/System32 /run/WSL
printf 'MZ' >/mnt/c/Windows/System32/cmd.exe && chmod +x /mnt/c/Windows/System32/cmd.exe
PATH="$PATH:/mnt/c/Windows/System32:/mnt/c/Program Files/Git/cmd:/mnt/d/gone"
WSL_DISTRO_NAME=Ubuntu WSL_INTEROP=/run/WSL/1_interop WSLENV=
export PATH WSL_DISTRO_NAME WSL_INTEROP WSLENV
