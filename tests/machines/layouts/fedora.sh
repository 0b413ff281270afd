# Links of crypto-policies, authselect and ca-trust.
resolver ../run/systemd/resolve/stub-resolv.conf
cp /etc/nsswitch.conf "$work/nsswitch.conf"
leads /etc/nsswitch.conf /etc/authselect/nsswitch.conf "$work/nsswitch.conf"
certificates /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
leads /etc/pki/tls/certs/ca-bundle.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
leads /etc/os-release ../usr/lib/os-release
leads /etc/localtime ../usr/share/zoneinfo/America/New_York
