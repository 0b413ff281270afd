# Files of /etc are links by way of /etc/static into the store, and programs are
# found in /run/current-system. The test makes /nix.
store=/nix/store/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-etc
mount -t tmpfs none /nix && mkdir -p "$store"
ln -s "$store" /etc/static
for name in hosts nsswitch.conf passwd group localtime profile bash.bashrc services protocols; do
	[ -e "/etc/$name" ] || continue
	cp -rL "/etc/$name" "$store/$name"
	rm -rf "/etc/$name"
	ln -s "/etc/static/$name" "/etc/$name"
done
resolver ../run/NetworkManager/resolv.conf
certificates /etc/static/ca.pem
mkdir -p /nix/store/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-sw /run/current-system
ln -s /usr/bin /nix/store/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-sw/bin
ln -s /nix/store/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-sw /run/current-system/sw
PATH=/run/current-system/sw/bin:$PATH
export PATH
