# A system that cannot be written: homes are in /var/home, /home is a symlink.
resolver ../run/systemd/resolve/stub-resolv.conf
mkdir -p "$work/linked"
ln -s "$home" "$work/linked/home"
mount -t tmpfs none /home
ln -s "$home" /home/linked
HOME=/home/linked
export HOME
